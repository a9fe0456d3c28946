import { randomBytes } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { mayHold, ownPermissions } from "../../src/contract/methods.js";
import type { Target } from "../middleware/authorization/samples.js";
import { type Api, keyOf } from "../support/api/api.js";
import type { TestServer } from "../support/service/server.js";

/** The only allowed origin, both by CORS and for the attacker's restricted key. */
export const allowedOrigin = "https://shop.example.com";

/** An attacker with valid keys, and a victim in another tenant. */
export interface FuzzFixtures {
  readonly attacker: {
    readonly tenantId: string;
    /** A management key of a separate tenant, which may be filled with applications. */
    readonly creator: string;
    readonly management: string;
    readonly private: string;
    readonly public: string;
    readonly session: string;
    /** The key of a public application that is restricted to {@link allowedOrigin}. */
    readonly withOrigin: string;
  };
  /** No request of the attacker may read or change the victim's data. */
  readonly victim: Target & {
    readonly rootKey: string;
    /** Part of the victim's data and of no request, so that it reveals leaks. */
    readonly mark: string;
  };
}

const day = 86_400_000;

export async function createFuzzFixtures(server: TestServer, api: Api): Promise<FuzzFixtures> {
  return { attacker: await createAttacker(server, api), victim: await createVictim(server, api) };
}

async function createAttacker(server: TestServer, api: Api): Promise<FuzzFixtures["attacker"]> {
  const root = await server.createTenant();
  const createKey = async (type: string, permissions: string[], allowedOrigins: string[] = []) => {
    const request = { name: type, type, permissions, allowedOrigins };
    return keyOf(await api.createApplication(root.key, request));
  };
  const permissionNames = ownPermissions.map(({ name }) => name);
  const backend = await createKey("private", [...permissionNames, "token:read"]);
  const shop = await createKey("public", ["token:read", "application:read"]);
  const { sessionKey, nonce } = await api.createSession(shop);
  const expiresAt = timestampFromMs(server.clock.now() + day);
  const permissions = permissionNames.filter((name) => mayHold("session", name));
  await api.authorizeSession(backend, { nonce, permissions, expiresAt });
  return {
    tenantId: root.tenantId,
    creator: (await server.createTenant()).key,
    management: root.key,
    private: backend,
    public: shop,
    session: sessionKey,
    withOrigin: await createKey("public", ["application:read"], [allowedOrigin]),
  };
}

async function createVictim(server: TestServer, api: Api): Promise<FuzzFixtures["victim"]> {
  const { key: rootKey } = await server.createTenant();
  const mark = `victim-${randomBytes(8).toString("hex")}`;
  const permissions = ["token:read"];
  const application = { name: mark, type: "public", permissions };
  const created = await api.createApplication(rootKey, application);
  const { id } = created;
  const { data } = await api.listApplicationKeys(rootKey, { id });
  const { id: sessionId, nonce } = await api.createSession(keyOf(created));
  const events = await api.listEvents(rootKey, { target: id, size: 1 });
  return {
    applicationId: id,
    key: keyOf(created),
    keyId: data[0]?.id ?? "",
    sessionId,
    eventId: events.data[0]?.id ?? "",
    nonce,
    rootKey,
    mark,
  };
}
