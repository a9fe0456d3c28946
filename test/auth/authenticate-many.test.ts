import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Authenticate,
  type AuthenticateMany,
  createAuthenticate,
  createAuthenticateMany,
} from "../../src/auth/authenticate.js";
import type { Caller } from "../../src/auth/caller.js";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { keyTypeOf } from "../../src/contract/key-text.js";
import { newId } from "../../src/lib/uuid.js";
import type { NewApplication } from "../../src/store/port/records.js";
import { aGrant, anApplication, aSession, hour } from "../contract/store/fixtures.js";
import { characters } from "../support/generators/characters.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { overrideStore } from "../support/service/store.js";
import { audit } from "../support/store/audit.js";
import type { OperableStore } from "../support/store/operations.js";

// The new pepper and the old one, as during a rotation.
const keyring = createKeyring(["new", "old"]);
const oldKeyring = createKeyring(["old"]);

let server: TestServer;
let authenticate: Authenticate;
let authenticateMany: AuthenticateMany;
/** Valid and invalid keys of every kind. */
let keys: Readonly<Record<string, string>>;

beforeAll(async () => {
  server = await startServer();
  const { store } = server;
  authenticate = createAuthenticate(store, keyring, "held");
  authenticateMany = createAuthenticateMany(store, keyring, "held");
  keys = await createKeys(store);
});

afterAll(() => server.close());

async function createKeys(store: OperableStore): Promise<Record<string, string>> {
  const created: Record<string, string> = {};

  async function createApplication(
    name: string,
    fields: Partial<NewApplication> = {},
    keyType = keyTypeOf(fields.type ?? "private"),
    hashedBy = keyring,
  ) {
    const id = newId(Date.now());
    const key = generateKey(keyType, id);
    created[name] = key;
    const application = anApplication({
      id,
      type: "private",
      name,
      key: { id: newId(Date.now()), hash: hashedBy.hash(key) },
      ...fields,
    });
    return store.applications.create(application, audit.created);
  }

  async function createSession(name: string, owner: Parameters<typeof aSession>[0], ttl = hour) {
    const id = newId(Date.now());
    created[name] = generateKey("ses", id);
    created[`nonce of ${name}`] = generateKey("non", id);
    const keyHash = keyring.hash(created[name]);
    const session = aSession(owner, { id, keyHash, ttl });
    await store.sessions.create(session);
    return session;
  }

  const expiresAt = server.clock.now() + 1;
  const shop = await createApplication("shop");
  await createApplication("till", { type: "public" });
  await createApplication("tool", { type: "management" });
  await createApplication("of the old pepper", {}, "prv", oldKeyring);
  await createApplication("of a removed pepper", {}, "prv", createKeyring(["removed"]));
  await createApplication("of another kind", { type: "private" }, "pub");
  const expiring = await createApplication("expired", { expiresAt });
  const { id: sessionId } = await createSession("pending", shop);
  await store.sessions.authorize(aGrant(await createSession("authorized", shop)), audit.authorized);
  await createSession("brief", shop, 1);
  await createSession("of the expired", expiring);
  const deleted = await createApplication("deleted");
  await createSession("of the deleted", deleted);
  await store.applications.delete(deleted.tenantId, deleted.id, audit.deleted);
  server.clock.advance(1);

  created["another secret"] = generateKey("prv", shop.id);
  created["another secret of a session"] = generateKey("ses", sessionId);
  created["a session of an application's id"] = generateKey("ses", shop.id);
  created.unknown = generateKey("prv", newId(Date.now()));
  created["unknown session"] = generateKey("ses", newId(Date.now()));
  created["of a wrong checksum"] = `${created.shop?.slice(0, -1)}~`;
  created.empty = "";
  return created;
}

function describeOwner(caller: Caller | undefined): string | undefined {
  return caller && [caller.application.id, caller.session?.id].join("/");
}

it("finds the owners of valid keys only", async () => {
  const found = await authenticateMany(Object.values(keys));
  const names = Object.keys(keys).filter((_name, at) => found[at]);
  expect(names.sort()).toEqual(
    ["shop", "till", "tool", "of the old pepper", "pending", "authorized"].sort(),
  );
});

it("finds the same owners for many keys as for each key alone", async () => {
  const existing = fc.constantFrom(...Object.values(keys));
  const garbage = fc.oneof(fc.string({ unit: characters }), fc.constantFrom("lk_", "__proto__"));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ arbitrary: existing, weight: 4 }, garbage), { maxLength: 40 }),
      async (requested) => {
        const batched = await authenticateMany(requested);
        const single = await Promise.all(requested.map(authenticate));
        expect(batched.map(describeOwner)).toEqual(single.map(describeOwner));
      },
    ),
  );
});

describe("store lookups", () => {
  /** Authenticates keys and returns the ids of each store read. */
  async function recordReads(requested: readonly string[]): Promise<string[][]> {
    const reads: string[][] = [];
    const { applications, sessions } = server.store;
    const recording = overrideStore(server.store, {
      applications: {
        findMany(ids) {
          reads.push(["applications", ...ids]);
          return applications.findMany(ids);
        },
      },
      sessions: {
        findMany(ids) {
          reads.push(["sessions", ...ids]);
          return sessions.findMany(ids);
        },
      },
    });
    await createAuthenticateMany(recording, keyring, "held")(requested);
    return reads;
  }

  it("make one read per kind, with each key once", async () => {
    const { shop = "", till = "", pending = "", authorized = "" } = keys;
    const reads = await recordReads([shop, pending, till, shop, authorized, pending, shop]);
    expect(reads.map(([kind, ...ids]) => [kind, ids.length])).toEqual([
      ["applications", 2],
      ["sessions", 2],
    ]);
  });

  it("do not happen for malformed keys and nonces", async () => {
    const { "nonce of pending": nonce = "", "of a wrong checksum": mistyped = "" } = keys;
    expect(await recordReads([])).toEqual([]);
    expect(await recordReads([nonce, mistyped, "", "nonsense"])).toEqual([]);
  });

  it("include an id once per secret, and accept the right secret only", async () => {
    const { shop = "", "another secret": wrong = "" } = keys;
    const found = await authenticateMany([wrong, shop]);
    expect(found.map((caller) => caller?.application.name)).toEqual([undefined, "shop"]);
  });
});

it("rejects once if one of several lookups fails", async () => {
  const { store } = server;
  const { findMany } = store.applications;
  const applications = {
    findByImportedKey: () => Promise.reject(new Error("store unavailable")),
    findMany: async (ids: readonly string[]) => {
      await new Promise(setImmediate);
      return findMany(ids);
    },
  };
  const imported = createKeyring([""], { importedKeys: true });
  const authenticateAny = createAuthenticateMany(
    overrideStore(store, { applications }),
    imported,
    "held",
  );
  const own = generateKey("prv", newId(Date.now()));
  await expect(authenticateAny(["sk_live_51H8vXbKq2mNpR7t", own])).rejects.toThrow(
    "store unavailable",
  );
});
