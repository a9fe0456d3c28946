import {
  MongoClient,
  type MongoClientOptions,
  MongoServerError,
  ReadConcern,
  type TopologyDescription,
} from "mongodb";
import type { ReadMode } from "../../config/settings.js";
import { applicationsName } from "./collections.js";
import { callDriver, defaultSocketTimeout, limitsOf } from "./driver-call.js";
import { IncompatibleSchema, prepareSchema, readDataId } from "./prepare-schema.js";

/** The driver name that all our clients send. Unlike `appName`, the URI cannot override it. */
const clientName = "latchkey";

/** Detect a dead or frozen primary within seconds. With the driver's defaults, calls hang for half a minute. */
const defaultOptions: MongoClientOptions = {
  appName: "latchkey",
  connectTimeoutMS: 2_000,
  heartbeatFrequencyMS: 1_000,
  serverSelectionTimeoutMS: 5_000,
  socketTimeoutMS: defaultSocketTimeout,
  waitQueueTimeoutMS: 2_000,
};

export interface Connection {
  readonly client: MongoClient;
  readonly freshRead: FreshRead;
}

/** Connects with our defaults, which options in the URI override. */
export async function connect(
  uri: string,
  reads: ReadMode,
  options: MongoClientOptions = {},
): Promise<Connection> {
  const client = createClient(uri, { ...omitGivenInUri(uri, defaultOptions), ...options });
  const freshRead = createFreshRead(client, reads);
  await open(client, uri);
  return { client, freshRead };
}

interface Prepared {
  /** The id of the data. */
  readonly id: string;
  readonly isSharded: boolean;
}

/**
 * Prepares the schema and returns the id of the data. Uses a connection without
 * a socket timeout, because building an index on many documents takes long.
 */
export async function prepare(
  uri: string,
  database: string,
  eventRetention: number,
): Promise<Prepared> {
  const client = createClient(uri, { ...omitGivenInUri(uri, defaultOptions), socketTimeoutMS: 0 });
  await open(client, uri);
  try {
    const hello = await client.db("admin").command({ hello: 1 });
    const isSharded = hello.msg === "isdbgrid";
    if (!hello.setName && !isSharded) {
      throw new Error("not a replica set");
    }
    const db = client.db(database, { writeConcern: { w: "majority" } });
    await prepareSchema(db, eventRetention);
    return { id: await readDataId(db), isSharded };
  } catch (cause) {
    const what = `Cannot prepare the database ${database} at ${hosts(uri)}`;
    const hint =
      cause instanceof IncompatibleSchema
        ? "set MONGODB_DATABASE to an empty database, or run the version that created this one"
        : "run mongod with --replSet (one member is enough) and grant the user the roles readWrite and dbAdmin";
    throw operatorError(what, hint, cause);
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
        ? "check the user and password in MONGODB_URI"
        : "check that it is running, that it has a primary, and that MONGODB_URI is correct";
    throw operatorError(`MongoDB at ${hosts(uri)} cannot be reached`, hint, cause);
  }
}

function createClient(uri: string, options: MongoClientOptions): MongoClient {
  try {
    const driverInfo = { name: clientName };
    return new MongoClient(uri, { ...options, retryWrites: true, driverInfo });
  } catch (cause) {
    const hint = "expected a form like mongodb://user:password@host:27017/?replicaSet=name";
    throw operatorError("MONGODB_URI is not a valid MongoDB connection string", hint, cause);
  }
}

const maxReasonLength = 200;

/** One sentence for the operator. The driver's messages contain no secrets. */
function operatorError(what: string, hint: string, cause: unknown): Error {
  const message = cause instanceof Error ? cause.message.replace(/\.$/, "") : String(cause);
  const reason =
    message.length > maxReasonLength ? `${message.slice(0, maxReasonLength)}…` : message;
  return new Error(`${what} (${reason}): ${hint}.`, { cause });
}

/** The part of a URI that is safe to show. */
function hosts(uri: string): string {
  const [, address = ""] = /^[^:]*:\/\/([^?]*)/.exec(uri) ?? [];
  return address.replace(/^.*@/s, "").replace(/\/.*/s, "");
}

function omitGivenInUri(uri: string, defaults: MongoClientOptions): MongoClientOptions {
  const query = new URLSearchParams(uri.slice(uri.indexOf("?") + 1));
  const given = new Set([...query.keys()].map((name) => name.toLowerCase()));
  return Object.fromEntries(
    Object.entries(defaults).filter(([name]) => !given.has(name.toLowerCase())),
  );
}

/** Returns the options for a read that must see all acknowledged writes. Call it for every read. */
export type FreshRead = () => { readonly readConcern: ReadConcern };

const linearizable = { readConcern: new ReadConcern("linearizable") };
const majority = { readConcern: new ReadConcern("majority") };

/**
 * Must be called before the client connects. In a replica set of one member, no
 * other primary can exist and a majority read is as fresh; a linearizable read
 * would wait for the next journal sync.
 */
function createFreshRead(client: MongoClient, reads: ReadMode): FreshRead {
  let isSingleMember = false;
  client.on("topologyDescriptionChanged", ({ newDescription }) => {
    isSingleMember = hasOneMember(newDescription);
  });
  return () => (reads === "majority" || isSingleMember ? majority : linearizable);
}

function hasOneMember({ servers }: TopologyDescription): boolean {
  const [server, ...others] = servers.values();
  return others.length === 0 && server?.type === "RSPrimary" && server.allHosts.length === 1;
}

/** Whether a database contains a store, of any schema. Creates nothing in it. */
export async function storeExists(uri: string, database: string): Promise<boolean> {
  const { client } = await connect(uri, "majority");
  try {
    const named = { name: applicationsName };
    const db = client.db(database);
    const collections = db.listCollections(named, { nameOnly: true, ...limitsOf({ db }) });
    return (await callDriver(() => collections.toArray())).length > 0;
  } finally {
    await client.close();
  }
}
