import { join } from "node:path";
import type { BenchContext, Instance } from "../context.js";
import { encodeCheck, rpcPaths } from "../scenarios.js";
import { type Keys, privateApplication, seededApplications } from "../seed.js";
import { addressOf, type Server, startBaseline } from "../servers.js";
import type { WriteSpec } from "./http-lmdb.js";

export type ServerName =
  | "bare"
  | "bareHttp2"
  | "lmdb"
  | "minimalGrpc"
  | "grpcJs"
  | "connectOverHttp1"
  | "connectOverHttp2"
  | "findOne"
  | "embedded"
  | "mongo";

/** A baseline server or Latchkey, with the keys of its requests. */
export interface ServerUnderTest {
  readonly label: string;
  readonly server: Server;
  readonly keys: Keys;
}

export type ServersUnderTest = Readonly<Partial<Record<ServerName, ServerUnderTest>>>;

/** Starts the baselines, which return the same bytes as Latchkey. */
export async function startServersUnderTest(context: BenchContext): Promise<ServersUnderTest> {
  const { embedded, mongo, cores } = context;
  const { keys } = embedded;
  const start = (name: string, settings: Readonly<Record<string, string>>) =>
    startBaseline(name, settings, cores.server);

  const application = await fetchApplication(embedded);
  const messages = JSON.stringify(await fetchMessages(embedded));
  return {
    bare: await startBareHttp(context),
    bareHttp2: {
      label: "bare node:http2",
      server: await start("bare-http", { BODY: application, PROTOCOL: "http2" }),
      keys,
    },
    lmdb: {
      label: "minimal node:http + lmdb",
      server: await start("http-lmdb", {
        BODY: application,
        DATA_DIR: join(context.folder, "http-lmdb"),
        RECORDS: String(seededApplications),
        WRITES: JSON.stringify(await createWriteSpecs(embedded)),
      }),
      keys: {
        ...keys,
        private: keys.private.map(({ id }, index) => ({ id, key: `record-${index}` })),
      },
    },
    minimalGrpc: {
      label: "minimal gRPC on node:http2",
      server: await start("minimal-grpc", { RESPONSES: messages }),
      keys,
    },
    grpcJs: {
      label: "@grpc/grpc-js",
      server: await start("grpc-js", { RESPONSES: messages }),
      keys,
    },
    connectOverHttp1: {
      label: "stock connect-node",
      server: await start("connect-node", { RESPONSES: messages, PROTOCOL: "http1" }),
      keys,
    },
    connectOverHttp2: {
      label: "stock connect-node",
      server: await start("connect-node", { RESPONSES: messages, PROTOCOL: "http2" }),
      keys,
    },
    embedded: toServerUnderTest(embedded),
    ...(mongo && {
      mongo: toServerUnderTest(mongo),
      findOne: {
        label: "node:http + findOne",
        server: await start("mongo-find-one", mongo.store),
        // Records are found by id.
        keys: {
          ...mongo.keys,
          private: mongo.keys.private.map(({ id }) => ({ id, key: id })),
        },
      },
    }),
  };
}

/** Starts the lower bound for requests over HTTP/1.1. */
export async function startBareHttp({ embedded, cores }: BenchContext): Promise<ServerUnderTest> {
  const settings = { BODY: await fetchApplication(embedded) };
  const server = await startBaseline("bare-http", settings, cores.server);
  return { label: "bare node:http", server, keys: embedded.keys };
}

function fetchApplication(instance: Instance): Promise<string> {
  return send(instance, "GET", "/applications/key", getFirstKey(instance.keys));
}

function toServerUnderTest({ name, server, keys }: Instance): ServerUnderTest {
  return { label: `Latchkey, ${name}`, server, keys };
}

function getFirstKey({ private: [first] }: Keys): string {
  return first?.key ?? "";
}

/** Fetches the response messages of Latchkey by method path, in base64. */
async function fetchMessages({ server, keys }: Instance): Promise<Record<string, string>> {
  const key = getFirstKey(keys);
  return {
    [rpcPaths.read]: await callMethod(server, rpcPaths.read, key, new Uint8Array()),
    [rpcPaths.check]: await callMethod(server, rpcPaths.check, keys.checking, encodeCheck(key)),
  };
}

/** The rows that the embedded store writes: a record and its index, expiration or audit rows. */
async function createWriteSpecs(instance: Instance): Promise<Record<string, WriteSpec>> {
  const { keys } = instance;
  const session = await send(instance, "POST", "/sessions", keys.public);
  const application = await send(
    instance,
    "POST",
    "/applications",
    keys.management,
    privateApplication,
  );
  return {
    "/sessions": { status: 201, body: session, rows: [420, 24] },
    "/sessions/authorize": { status: 204, body: "", rows: [720, 24, 200] },
    "/applications": { status: 201, body: application, rows: [1_150, 40, 8] },
  };
}

async function send(
  { server }: Instance,
  method: string,
  path: string,
  key: string,
  body?: string,
): Promise<string> {
  const headers = { "svc-api-key": key, ...(body && { "content-type": "application/json" }) };
  const response = await fetch(`${addressOf(server)}${path}`, {
    method,
    headers,
    ...(body && { body }),
  });
  if (!response.ok) {
    throw new Error(`${method} ${path} returned ${response.status}`);
  }
  return response.text();
}

/**
 * Returns the response message of a method in base64. Uses the Connect protocol,
 * whose binary responses are the bare message.
 */
async function callMethod(
  server: Server,
  path: string,
  key: string,
  message: Uint8Array,
): Promise<string> {
  const response = await fetch(`${addressOf(server)}${path}`, {
    method: "POST",
    headers: { "svc-api-key": key, "content-type": "application/proto" },
    body: message as Uint8Array<ArrayBuffer>,
  });
  if (!response.ok) {
    throw new Error(`${path} returned ${response.status} ${await response.text()}`);
  }
  return Buffer.from(await response.arrayBuffer()).toString("base64");
}
