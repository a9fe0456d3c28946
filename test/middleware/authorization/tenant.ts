import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CreateApplicationRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { CallerType } from "../../../gen/latchkey/v1/options_pb.js";
import type { CreateSessionResponse } from "../../../gen/latchkey/v1/session_service_pb.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { accessOf, ownPermissions } from "../../../src/contract/methods.js";
import { type Api, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import type { TestServer } from "../../support/service/server.js";
import type { Target } from "./samples.js";

export interface CreatedApplication {
  readonly id: string;
  readonly key: string;
}

/** A tenant with helpers to create callers and targets. */
export interface MatrixTenant {
  readonly id: string;
  readonly api: Api;
  readonly root: { readonly key: string };
  /** The application that creates sessions. */
  readonly shop: CreatedApplication;
  now(): number;
  /** Advances the clock of the server. */
  advance(milliseconds: number): void;
  createApplication(
    type: ApplicationType,
    permissions: string[],
    more?: MessageInitShape<typeof CreateApplicationRequestSchema>,
  ): Promise<CreatedApplication>;
  /** Creates a session, and authorizes it if permissions are given. */
  createSession(
    permissions?: string[],
    more?: { readonly expiresAt: Timestamp },
  ): Promise<CreateSessionResponse>;
  createTarget(permissions?: string[]): Promise<Target>;
}

const day = 86_400_000;

export async function createMatrixTenant(server: TestServer): Promise<MatrixTenant> {
  const api = createRestApi(server.url);
  const root = await server.createTenant();
  const { now, advance } = server.clock;

  const createApplication: MatrixTenant["createApplication"] = async (
    type,
    permissions,
    more = {},
  ) => {
    const request = { name: `${type} application`, type, permissions, ...more };
    const created = await api.createApplication(root.key, request);
    return { id: created.id, key: keyOf(created) };
  };

  const all = ownPermissions.map(({ name }) => name);
  const backend = await createApplication("private", [...all, "token:read"]);
  const shop = await createApplication("public", ["token:read"]);

  return {
    id: root.tenantId,
    api,
    root,
    shop,
    now,
    advance,
    createApplication,

    async createSession(permissions, more = { expiresAt: timestampFromMs(now() + day) }) {
      const session = await api.createSession(shop.key);
      if (permissions) {
        await api.authorizeSession(backend.key, { nonce: session.nonce, permissions, ...more });
      }
      return session;
    },

    async createTarget(permissions = ["token:read"]) {
      const { id } = await createApplication("public", permissions);
      const request = { id, gracePeriod: durationFromMs(day) };
      const key = keyOf(await api.regenerateApplicationKey(root.key, request));
      const { data } = await api.listApplicationKeys(root.key, { id });
      const { id: sessionId, nonce } = await api.createSession(key);
      const eventId = await findEvent(api, root.key, id);
      return { applicationId: id, key, keyId: data[1]?.id ?? "", sessionId, eventId, nonce };
    },
  };
}

/** Creates a tenant whose only manager is the target. Another application creates the session. */
export async function createLastManager(server: TestServer): Promise<Target> {
  const api = createRestApi(server.url);
  const { applicationId, key } = await server.createTenant();
  const { data } = await api.listApplicationKeys(key, { id: applicationId });
  const request = { name: "shop", type: "public", permissions: ["token:read"] };
  const shop = await api.createApplication(key, request);
  const { id: sessionId, nonce } = await api.createSession(keyOf(shop));
  const eventId = await findEvent(api, key, applicationId);
  return { applicationId, key, keyId: data[0]?.id ?? "", sessionId, eventId, nonce };
}

/** Returns the id of an event about an application. */
export async function findEvent(api: Api, key: string, target: string): Promise<string> {
  const { data } = await api.listEvents(key, { target, size: 1 });
  return data[0]?.id ?? "";
}

/** Returns an application type that a method admits. */
export function getAdmittedType(method: DescMethod): ApplicationType {
  const { callers } = accessOf(method);
  return callers.includes(CallerType.PUBLIC) ? "public" : "private";
}
