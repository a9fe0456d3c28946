import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CreateApplicationRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { CreateSessionResponse } from "../../../gen/latchkey/v1/session_service_pb.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { ownPermissions } from "../../../src/contract/methods.js";
import { type Api, keyOf } from "../../support/api.js";
import { createRestApi } from "../../support/api-rest.js";
import type { TestServer } from "../../support/server.js";
import type { Target } from "./samples.js";

export interface MadeApplication {
  readonly id: string;
  readonly key: string;
}

/** A tenant, and ways to make callers and targets in it. */
export interface MatrixTenant {
  readonly id: string;
  readonly api: Api;
  readonly root: { readonly key: string };
  /** The application that sessions are opened with. */
  readonly shop: MadeApplication;
  now(): number;
  /** Lets time go by, for all tenants of the server. */
  advance(milliseconds: number): void;
  application(
    type: ApplicationType,
    permissions: string[],
    more?: MessageInitShape<typeof CreateApplicationRequestSchema>,
  ): Promise<MadeApplication>;
  /** Opens a session, and authorizes it where permissions are given. */
  session(
    permissions?: string[],
    more?: { readonly expiresAt: Timestamp },
  ): Promise<CreateSessionResponse>;
  /** Makes something to aim at, with these permissions. */
  target(permissions?: string[]): Promise<Target>;
}

const day = 86_400_000;

export async function createMatrixTenant(server: TestServer): Promise<MatrixTenant> {
  const api = createRestApi(server.url);
  const root = await server.createTenant();
  const { now, advance } = server.clock;

  const application: MatrixTenant["application"] = async (type, permissions, more = {}) => {
    const request = { name: `${type} one`, type, permissions, ...more };
    const made = await api.createApplication(root.key, request);
    return { id: made.id, key: keyOf(made) };
  };

  const own = ownPermissions.map(({ name }) => name);
  const backend = await application("private", [...own, "token:read"]);
  const shop = await application("public", ["token:read"]);

  return {
    id: root.tenantId,
    api,
    root,
    shop,
    now,
    advance,
    application,

    async session(permissions, more = { expiresAt: timestampFromMs(now() + day) }) {
      const session = await api.createSession(shop.key);
      if (permissions) {
        await api.authorizeSession(backend.key, { nonce: session.nonce, permissions, ...more });
      }
      return session;
    },

    async target(permissions = ["token:read"]) {
      const { id } = await application("public", permissions);
      const grace = { id, gracePeriod: durationFromMs(day) };
      const key = keyOf(await api.regenerateApplicationKey(root.key, grace));
      const { data } = await api.listApplicationKeys(root.key, { id });
      const { id: sessionId, nonce } = await api.createSession(key);
      return { applicationId: id, key, keyId: data[1]?.id ?? "", sessionId, nonce };
    },
  };
}

/** A tenant whose only manager is the target. Another application opens the session. */
export async function createLastManager(server: TestServer): Promise<Target> {
  const api = createRestApi(server.url);
  const { applicationId, key } = await server.createTenant();
  const { data } = await api.listApplicationKeys(key, { id: applicationId });
  const request = { name: "shop", type: "public", permissions: ["token:read"] };
  const shop = await api.createApplication(key, request);
  const { id: sessionId, nonce } = await api.createSession(keyOf(shop));
  return { applicationId, key, keyId: data[0]?.id ?? "", sessionId, nonce };
}
