import { join } from "node:path";
import type { Stage, Subject } from "../context.js";
import { checkOf, rpcPaths } from "../scenarios.js";
import { type Keys, privateApplication, seededApplications } from "../seed.js";
import { addressOf, type Server, startContender } from "../servers.js";
import type { WriteOrder } from "./http-lmdb.js";

export type Who =
  | "bare"
  | "bareHttp2"
  | "lmdb"
  | "byHand"
  | "grpcJs"
  | "connectOverHttp1"
  | "connectOverHttp2"
  | "findOne"
  | "embedded"
  | "mongo";

/** A server that gets requests, and the keys that they come with. */
export interface Participant {
  readonly label: string;
  readonly server: Server;
  readonly keys: Keys;
}

export type Participants = Readonly<Partial<Record<Who, Participant>>>;

/** Starts the contenders, which answer with what Latchkey answers. */
export async function startParticipants(stage: Stage): Promise<Participants> {
  const { embedded, mongo, cores } = stage;
  const { keys } = embedded;
  const start = (name: string, settings: Readonly<Record<string, string>>) =>
    startContender(name, settings, cores.server);

  const application = await applicationOf(embedded);
  const messages = JSON.stringify(await answersOfCalls(embedded));
  return {
    bare: await startBare(stage),
    bareHttp2: {
      label: "bare node:http2",
      server: await start("bare-http2", { BODY: application }),
      keys,
    },
    lmdb: {
      label: "minimal node:http + lmdb",
      server: await start("http-lmdb", {
        BODY: application,
        DATA_DIR: join(stage.folder, "floor"),
        RECORDS: String(seededApplications),
        WRITES: JSON.stringify(await writesOf(embedded)),
      }),
      keys: { ...keys, private: keys.private.map(({ id }, at) => ({ id, key: `record-${at}` })) },
    },
    byHand: {
      label: "minimal gRPC on node:http2",
      server: await start("minimal-grpc", { ANSWERS: messages }),
      keys,
    },
    grpcJs: {
      label: "@grpc/grpc-js",
      server: await start("grpc-js", { ANSWERS: messages }),
      keys,
    },
    connectOverHttp1: {
      label: "stock connect-node",
      server: await start("stock-connect", { ANSWERS: messages, PROTOCOL: "http1" }),
      keys,
    },
    connectOverHttp2: {
      label: "stock connect-node",
      server: await start("stock-connect", { ANSWERS: messages, PROTOCOL: "http2" }),
      keys,
    },
    embedded: participantOf(embedded),
    ...(mongo && {
      mongo: participantOf(mongo),
      findOne: {
        label: "node:http + findOne",
        server: await start("mongo-find-one", mongo.store),
        // It finds records by their id.
        keys: {
          ...mongo.keys,
          private: mongo.keys.private.map(({ id }) => ({ id, key: id })),
        },
      },
    }),
  };
}

/** Starts the floor of all requests over HTTP/1.1. */
export async function startBare({ embedded, cores }: Stage): Promise<Participant> {
  const settings = { BODY: await applicationOf(embedded) };
  const server = await startContender("bare-http", settings, cores.server);
  return { label: "bare node:http", server, keys: embedded.keys };
}

/** An application as Latchkey shows it. */
function applicationOf(subject: Subject): Promise<string> {
  return ask(subject, "GET", "/applications/key", firstKey(subject.keys));
}

function participantOf({ name, server, keys }: Subject): Participant {
  return { label: `Latchkey, ${name}`, server, keys };
}

function firstKey({ private: [first] }: Keys): string {
  return first?.key ?? "";
}

/** The messages that Latchkey answers, by the path of the method, in base64. */
async function answersOfCalls({ server, keys }: Subject): Promise<Record<string, string>> {
  const key = firstKey(keys);
  return {
    [rpcPaths.read]: await answerOfCall(server, rpcPaths.read, key, new Uint8Array()),
    [rpcPaths.check]: await answerOfCall(server, rpcPaths.check, keys.checking, checkOf(key)),
  };
}

/** What the embedded store writes for these: a record, and rows to find it by, to end it, or to tell of it. */
async function writesOf(subject: Subject): Promise<Record<string, WriteOrder>> {
  const { keys } = subject;
  const session = await ask(subject, "POST", "/sessions", keys.public);
  const made = await ask(subject, "POST", "/applications", keys.management, privateApplication);
  return {
    "/sessions": { status: 201, answer: session, rows: [420, 24] },
    "/sessions/authorize": { status: 204, answer: "", rows: [720, 24, 200] },
    "/applications": { status: 201, answer: made, rows: [1_150, 40, 8] },
  };
}

async function ask(
  { server }: Subject,
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
    throw new Error(`${method} ${path} answered ${response.status}`);
  }
  return response.text();
}

/**
 * The message that a method answers, in base64. Asked in the Connect protocol,
 * whose binary answers are the message and nothing else.
 */
export async function answerOfCall(
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
    throw new Error(`${path} answered ${response.status} ${await response.text()}`);
  }
  return Buffer.from(await response.arrayBuffer()).toString("base64");
}
