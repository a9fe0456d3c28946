import {
  MongoClient,
  type MongoClientOptions,
  MongoServerError,
  ReadConcern,
  type TopologyDescription,
} from "mongodb";
import type { Reads } from "../../config/settings.js";
import { limits, reach } from "./reach.js";
import { applicationsName, prepareSchema, readDataId } from "./schema.js";
import { clientName } from "./transaction-retry.js";

/**
 * With these a dead or frozen primary is noticed in seconds; the driver's own
 * would hang for half a minute.
 */
const defaultOptions: MongoClientOptions = {
  appName: "latchkey",
  connectTimeoutMS: 2_000,
  heartbeatFrequencyMS: 1_000,
  serverSelectionTimeoutMS: 5_000,
  socketTimeoutMS: 3_000,
  waitQueueTimeoutMS: 2_000,
};

export interface Connection {
  readonly client: MongoClient;
  readonly freshRead: FreshRead;
}

/** Connects, with our defaults for what the URI leaves open. */
export async function connect(uri: string, reads: Reads): Promise<Connection> {
  const client = createClient(uri, unlessGiven(uri, defaultOptions));
  const freshRead = createFreshRead(client, reads);
  await open(client, uri);
  return { client, freshRead };
}

/**
 * Makes or migrates the schema, over a connection that waits: an index on many
 * documents takes its time. Answers the id of the data.
 */
export async function prepare(
  uri: string,
  database: string,
  eventRetention: number,
): Promise<string> {
  const client = createClient(uri, { ...unlessGiven(uri, defaultOptions), socketTimeoutMS: 0 });
  await open(client, uri);
  try {
    const hello = await client.db("admin").command({ hello: 1 });
    if (!hello.setName && hello.msg !== "isdbgrid") {
      throw new Error("it is not a replica set");
    }
    const db = client.db(database, { writeConcern: { w: "majority" } });
    await prepareSchema(db, eventRetention);
    return await readDataId(db);
  } catch (cause) {
    const what = `The database ${database} at ${hosts(uri)} cannot be prepared`;
    const hint =
      "it needs mongod with --replSet (one member will do) and a user with the roles readWrite and dbAdmin";
    throw problem(what, hint, cause);
  } finally {
    await client.close();
  }
}

async function open(client: MongoClient, uri: string): Promise<void> {
  try {
    await client.connect();
  } catch (cause) {
    const hint =
      cause instanceof MongoServerError
        ? "check user and password in MONGODB_URI"
        : "check that it runs, that it has a primary, and that MONGODB_URI names it";
    throw problem(`MongoDB at ${hosts(uri)} cannot be reached`, hint, cause);
  }
}

function createClient(uri: string, options: MongoClientOptions): MongoClient {
  try {
    const driverInfo = { name: clientName };
    return new MongoClient(uri, { ...options, retryWrites: true, driverInfo });
  } catch (cause) {
    const hint = "it should look like mongodb://user:password@host:27017/?replicaSet=name";
    throw problem("MONGODB_URI is not a connection string for MongoDB", hint, cause);
  }
}

const longestReason = 200;

/** One sentence for the operator. It holds the reasons of the driver, which repeat no secrets. */
function problem(what: string, hint: string, cause: unknown): Error {
  const words = cause instanceof Error ? cause.message.replace(/\.$/, "") : String(cause);
  const reason = words.length > longestReason ? `${words.slice(0, longestReason)}…` : words;
  return new Error(`${what} (${reason}): ${hint}.`, { cause });
}

/** The part of a URI that is safe to show. */
function hosts(uri: string): string {
  const [, address = ""] = /^[^:]*:\/\/([^?]*)/.exec(uri) ?? [];
  return address.replace(/^.*@/s, "").replace(/\/.*/s, "");
}

function unlessGiven(uri: string, defaults: MongoClientOptions): MongoClientOptions {
  const query = new URLSearchParams(uri.slice(uri.indexOf("?") + 1));
  const given = new Set([...query.keys()].map((name) => name.toLowerCase()));
  return Object.fromEntries(
    Object.entries(defaults).filter(([name]) => !given.has(name.toLowerCase())),
  );
}

/** The options of such a read, for as long as they hold: asked for with each. */
export type FreshRead = () => { readonly readConcern: ReadConcern };

const linearizable = { readConcern: new ReadConcern("linearizable") };
const majority = { readConcern: new ReadConcern("majority") };

/**
 * Tells how to read over a client, which has yet to connect. Where one member
 * is the whole set nobody can have replaced it, and a majority read says the
 * same; a linearizable one would wait there for the next sync of its journal.
 */
export function createFreshRead(client: MongoClient, reads: Reads): FreshRead {
  let isAlone = false;
  client.on("topologyDescriptionChanged", ({ newDescription }) => {
    isAlone = hasOneMember(newDescription);
  });
  return () => (reads === "majority" || isAlone ? majority : linearizable);
}

function hasOneMember({ servers }: TopologyDescription): boolean {
  const [server, ...others] = servers.values();
  return others.length === 0 && server?.type === "RSPrimary" && server.allHosts.length === 1;
}

/** Whether a database holds a store, whatever its schema; to find out makes nothing in it. */
export async function holdsStore(uri: string, database: string): Promise<boolean> {
  const { client } = await connect(uri, "majority");
  try {
    const named = { name: applicationsName };
    const collections = client.db(database).listCollections(named, { nameOnly: true, ...limits });
    return (await reach(() => collections.toArray())).length > 0;
  } finally {
    await client.close();
  }
}
