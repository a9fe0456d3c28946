import { randomBytes } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { mayHold, ownPermissions } from "../../src/contract/methods.js";
import type { Target } from "../middleware/authorization/samples.js";
import { type Api, keyOf } from "../support/api/api.js";
import type { TestServer } from "../support/service/server.js";

/** The only page that may call, and from which the key of the attacker with origins may be used. */
export const goodOrigin = "https://shop.example.com";

/** Those who attack, with good keys of their own, and those whom they attack. */
export interface FuzzWorld {
  readonly attacker: {
    readonly tenantId: string;
    /** Of a tenant of its own, which it may fill. */
    readonly creator: string;
    readonly management: string;
    readonly private: string;
    readonly public: string;
    readonly session: string;
    /** The key of a public application that may be used from {@link goodOrigin} alone. */
    readonly withOrigin: string;
  };
  /** Of another tenant. Whatever is asked about it, nothing of it may be shown or changed. */
  readonly victim: Target & {
    readonly rootKey: string;
    /** Stands in the name of all that the victim has, and in nothing that is ever sent. */
    readonly mark: string;
  };
}

const day = 86_400_000;

export async function createFuzzWorld(server: TestServer, api: Api): Promise<FuzzWorld> {
  return { attacker: await createAttacker(server, api), victim: await createVictim(server, api) };
}

async function createAttacker(server: TestServer, api: Api): Promise<FuzzWorld["attacker"]> {
  const root = await server.createTenant();
  const make = async (type: string, permissions: string[], allowedOrigins: string[] = []) => {
    const request = { name: type, type, permissions, allowedOrigins };
    return keyOf(await api.createApplication(root.key, request));
  };
  const own = ownPermissions.map(({ name }) => name);
  const backend = await make("private", [...own, "token:read"]);
  const shop = await make("public", ["token:read", "application:read"]);
  const { sessionKey, nonce } = await api.createSession(shop);
  const expiresAt = timestampFromMs(server.clock.now() + day);
  const permissions = own.filter((name) => mayHold("session", name));
  await api.authorizeSession(backend, { nonce, permissions, expiresAt });
  return {
    tenantId: root.tenantId,
    creator: (await server.createTenant()).key,
    management: root.key,
    private: backend,
    public: shop,
    session: sessionKey,
    withOrigin: await make("public", ["application:read"], [goodOrigin]),
  };
}

async function createVictim(server: TestServer, api: Api): Promise<FuzzWorld["victim"]> {
  const { key: rootKey } = await server.createTenant();
  const mark = `victim-${randomBytes(8).toString("hex")}`;
  const permissions = ["token:read"];
  const application = { name: mark, type: "public", permissions };
  const made = await api.createApplication(rootKey, application);
  const { id } = made;
  const { data } = await api.listApplicationKeys(rootKey, { id });
  const { id: sessionId, nonce } = await api.createSession(keyOf(made));
  return {
    applicationId: id,
    key: keyOf(made),
    keyId: data[0]?.id ?? "",
    sessionId,
    nonce,
    rootKey,
    mark,
  };
}
