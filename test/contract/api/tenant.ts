import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { type Api, type Key, keyOf } from "../../support/api/api.js";
import type { TestServer } from "../../support/service/server.js";

/** What a key is made to hold. */
export interface GrantsInit {
  readonly permissions?: string[];
  readonly rules?: MessageInitShape<typeof AccessRuleSchema>[];
  readonly expiresAt?: Timestamp;
  readonly allowedOrigins?: string[];
  readonly allowedCidrs?: string[];
}

export interface MadeApplication {
  readonly id: string;
  readonly key: string;
}

/** Everything that a backend of these tests may pass on to sessions. */
const delegated = ["token:read", "token:use", "token:create", "application:read", "access:check"];

/** A tenant of its own, and ways to fill it. */
export async function createTenant(server: TestServer, api: Api) {
  const root = await server.createTenant();

  async function make(type: string, grants: GrantsInit): Promise<MadeApplication> {
    const request = { name: `${type} one`, type, ...grants };
    const made = await api.createApplication(root.key, request);
    return { id: made.id, key: keyOf(made) };
  }

  const backend = await make("private", { permissions: delegated });
  const shop = await make("public", { permissions: ["token:create"] });

  /** Opens a session, and authorizes it where grants are given. */
  async function open(grants?: GrantsInit, application: { readonly key: Key } = shop) {
    const { sessionKey, nonce, expiresAt } = await api.createSession(application.key);
    if (grants) {
      await api.authorizeSession(backend.key, { nonce, ...grants });
    }
    return { key: sessionKey, nonce, expiresAt };
  }

  return { root, backend, shop, make, open };
}

export type Tenant = Awaited<ReturnType<typeof createTenant>>;
