import { setImmediate } from "node:timers/promises";
import { inspect } from "node:util";
import { describe, expect, it } from "@jest/globals";
import type { Db, Document } from "mongodb";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { ConnectionUse } from "../../../src/store/port/store.js";
import { anApplication } from "../../contract/store/fixtures.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { uri, withOptions } from "../../support/mongo/uri.js";
import { scrape } from "../../support/service/exposition.js";
import { startServer } from "../../support/service/server.js";
import { audit } from "../../support/store/audit.js";

const { createDatabase, open, shared } = useMongo();

describe("opening a store", () => {
  const getIndexes = async (db: Db, name: string) =>
    (await db.collection(name).indexes()).map(({ key, expireAfterSeconds, unique }) =>
      JSON.stringify({ key, expireAfterSeconds, unique }),
    );
  const sweep = '{"key":{"expires_at":1},"expireAfterSeconds":660}';
  const purge = '{"key":{"purge_at":1}}';
  const listing = '{"key":{"tenant_id":1,"_id":-1}}';
  const ofApplication = '{"key":{"application_id":1,"_id":-1}}';
  const ofOpenSessions = [
    '{"key":{"application_id":1,"expires_at":1,"epoch":1,"network_hash":1}}',
    '{"key":{"application_id":1,"network_hash":1,"expires_at":1,"epoch":1}}',
    '{"key":{"application_id":1,"expires_at":1,"epoch":1,"authorized_by":1,"authorization_epoch":1,"network_hash":1}}',
  ];
  const ofAuthorizer = '{"key":{"authorized_by":1,"_id":-1}}';
  const ofApplications = [
    sweep,
    purge,
    listing,
    '{"key":{"tenant_id":1,"disabled":1,"expires_at":1}}',
    '{"key":{"keys.hash":1}}',
    '{"key":{"expires_at":1,"_id":1}}',
    '{"key":{"keys.expires_at":1}}',
    '{"key":{"tenant_id":1,"type":1,"_id":-1}}',
    '{"key":{"tenant_id":1,"disabled":1,"_id":-1}}',
    '{"key":{"tenant_id":1,"held_permissions":1,"_id":-1}}',
    '{"key":{"tenant_id":1,"folded_name":1,"_id":1}}',
    '{"key":{"tenant_id":1,"expires_at":1,"_id":1}}',
    '{"key":{"tenant_id":1,"idle_since":1,"_id":1}}',
    '{"key":{"tenant_id":1,"external_id":1,"_id":-1}}',
    '{"key":{"tenant_id":1,"keys.id":1,"_id":-1}}',
    '{"key":{"tenant_id":1,"created_by":1,"_id":-1}}',
  ];
  const getOptions = async (db: Db, name: string): Promise<Document> => {
    const [info] = await db.listCollections({ name }, { nameOnly: false }).toArray();
    return info?.options ?? {};
  };

  it("works for many instances at once", async () => {
    const db = createDatabase();
    await Promise.all(Array.from({ length: 8 }, () => open(db)));
    expect((await getIndexes(db, "applications")).slice(1)).toEqual(ofApplications);
    expect((await getIndexes(db, "sessions")).slice(1)).toEqual([
      sweep,
      purge,
      listing,
      ofApplication,
      ofAuthorizer,
      ...ofOpenSessions,
    ]);
    expect(await getOptions(db, "sessions")).toMatchObject({
      validator: {
        $jsonSchema: {
          anyOf: [
            expect.objectContaining({ required: expect.arrayContaining(["expires_at"]) }),
            expect.objectContaining({ required: ["_id", "rev", "expires_at", "purge_at"] }),
          ],
        },
      },
      validationLevel: "strict",
      validationAction: "error",
    });
  });

  it("updates differing validators and indexes, also concurrently", async () => {
    const [db, fresh] = [createDatabase(), createDatabase()];
    await open(fresh);
    const validator = { name: { $exists: true } };
    await db.createCollection("applications", { validator, validationAction: "warn" });
    await db.collection("applications").createIndex({ expires_at: 1 });
    await db.collection("applications").createIndex({ tenant_id: 1, _id: -1 }, { sparse: true });
    await db.createCollection("sessions");
    await db.collection("sessions").createIndex({ expires_at: 1 }, { expireAfterSeconds: 3_600 });

    const [store] = await Promise.all(Array.from({ length: 4 }, () => open(db)));
    for (const name of ["applications", "sessions"]) {
      expect((await getIndexes(db, name)).sort()).toEqual((await getIndexes(fresh, name)).sort());
      expect(await getOptions(db, name)).toEqual(await getOptions(fresh, name));
    }
    expect(await store?.applications.isEmpty()).toBe(true);
  });

  it("refuses a database of an earlier version and leaves it unchanged", async () => {
    const db = createDatabase();
    const validator = { $jsonSchema: { bsonType: "object", required: ["_id"] } };
    await db.createCollection("applications", { validator });
    const error = await open(db).catch((error) => error);
    expect(error.message).toMatch(
      /\(the collection applications was created by another version\): set MONGODB_DATABASE to an empty database, or run the version that created this one\.$/,
    );
    expect(await getOptions(db, "applications")).toMatchObject({ validator });
    expect(await db.listCollections().toArray()).toHaveLength(1);
  });

  it("changes nothing that is up to date", async () => {
    const { db, store } = await shared();
    const { id } = await store.applications.create(anApplication(), audit.created);
    await db.setProfilingLevel("all");
    const again = await open(db);
    await db.setProfilingLevel("off");
    expect(await again.applications.find(id)).toBeDefined();
    const commands = await db.collection("system.profile").find().toArray();
    const names = new Set(commands.map(({ command }) => Object.keys(command ?? {})[0]));
    expect(names).toContain("listIndexes");
    for (const name of ["create", "collMod", "createIndexes", "dropIndexes"]) {
      expect(names).not.toContain(name);
    }
  });

  it("explains in one sentence why a database cannot be prepared", async () => {
    const db = createDatabase();
    await db.createCollection("applications", { viewOn: "others", pipeline: [] });
    const error = await open(db).catch((error) => error);
    expect(error.message).toMatch(/^Cannot prepare the database latchkey-.* at .* \(.*\): .*\.$/);
  });

  it("explains in one sentence why MongoDB is unreachable, without secrets", async () => {
    const at =
      "mongodb://someone:s3cr3t@127.0.0.1:1,127.0.0.1:2/?tlsCertificateKeyFilePassword=a@s3cr3t&serverSelectionTimeoutMS=2000";
    const error = await openMongoStore({ uri: at, database: "x" }).catch((error) => error);
    expect(error.message).toMatch(
      /^MongoDB at 127\.0\.0\.1:1,127\.0\.0\.1:2 cannot be reached \(.*ECONNREFUSED.*\): check that .*\.$/,
    );
    expect(inspect(error, { depth: 9 })).not.toMatch(/someone|s3cr3t/);
  });

  it("prefers the options in the URI to its own", async () => {
    const { db } = await shared();
    await open(db, { uri: withOptions(uri, { appname: "named-in-the-uri" }) });
    const connections = db.client
      .db("admin")
      .aggregate([{ $currentOp: { idleConnections: true } }]);
    const names = (await connections.toArray()).map(({ appName }) => appName);
    expect(names).toContain("named-in-the-uri");
  });

  it("refuses an invalid URI without showing secrets", async () => {
    for (const bad of [
      "",
      "someone:s3cr3t@host",
      "mongo://someone:s3cr3t@host",
      "mongodb://someone:s3cr3t@",
      "mongodb://someone:s3cr3t/@host",
      "mongodb://someone:s3cr3t@s3cr3t@host",
      "mongodb://someone:s3cr3t?@host",
      "mongodb://someone:s3cr3t%zz@host",
      "mongodb+srv://someone:s3cr3t@host:1",
      "mongodb://someone:s3cr3t@host/?nonsense=1",
    ]) {
      const error = await openMongoStore({ uri: bad, database: "x" }).catch((error) => error);
      expect(error.message).toMatch(
        /^MONGODB_URI is not a valid MongoDB connection string.*: .*\.$/,
      );
      expect(inspect(error)).not.toMatch(/someone|s3cr3t/);
    }
  });
});

describe("the connection counts of a MongoDB store", () => {
  it("include connections in use and waiting calls", async () => {
    const { db } = await shared();
    const narrow = withOptions(uri, { maxPoolSize: "1", waitQueueTimeoutMS: "60000" });
    const store = await open(db, { uri: narrow });
    const calls = Array.from({ length: 10 }, store.now);
    let isDone = false;
    const done = Promise.all(calls).finally(() => {
      isDone = true;
    });
    const counts: (ConnectionUse | undefined)[] = [];
    while (!isDone) {
      counts.push(store.connections?.());
      await setImmediate();
    }
    await done;
    expect(counts).toContainEqual({ inUse: 1, waiting: 9 });
    expect(store.connections?.()).toEqual({ inUse: 0, waiting: 0 });
  });

  it("are exported as metrics", async () => {
    const server = await startServer("lmdb", { store: (await shared()).store });
    const { samples } = await scrape(server);
    await server.close();
    const connections = samples.filter(({ name }) => name === "latchkey_store_connections");
    expect(connections.map(({ labels }) => labels.state)).toEqual(["in_use", "waiting"]);
  });
});
