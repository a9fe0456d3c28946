import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  BatchCheckAccessRequestSchema,
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
} from "../gen/latchkey/v1/access_service_pb.js";
import { grpcFrame } from "./load/http2-client.js";
import type { Load, LoadRequest } from "./load/load.js";
import { type Keys, privateApplication } from "./seed.js";

/** A kind of request whose cost is measured. */
export interface Scenario {
  readonly name: string;
  /** Where a request holds many things to do: how many, and what to call one of them. */
  readonly parts?: { readonly count: number; readonly name: string };
  /** The requests to send, given the answers to an earlier scenario that were kept. */
  load(target: Target, keptAnswers: readonly string[]): Load;
}

/** Where requests go, with whose keys, and for how long. */
export interface Target {
  readonly port: number;
  readonly keys: Keys;
  readonly seconds: number;
}

export const connections = 32;
const manyConnections = 64;
export const batchSize = 100;
/** How many keys have a batch of their own. */
const batchKeys = 100;

export const rpcPaths = {
  read: "/latchkey.v1.ApplicationService/GetApplicationByKey",
  check: "/latchkey.v1.AccessService/CheckAccess",
  batch: "/latchkey.v1.AccessService/BatchCheckAccess",
  stream: "/latchkey.v1.AccessService/StreamCheckAccess",
} as const;

const grants = {
  permissions: ["token:create"],
  rules: [
    {
      description: "The cards of one customer",
      priority: 1,
      conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/customer-42/" }],
      transform: "mask",
      permissions: ["token:read"],
    },
  ],
};

type Check = typeof check & { readonly key: string };

/** A check that a rule decides. */
export const check = { permission: "token:read", token: { container: "/pci/customer-42/" } };

/** That a check is allowed, in JSON and in the binary form. */
const allowedInJson = '"allowed":true';
const allowedInBinary = "\\x08\\x01";

export const readByKey: Scenario = {
  name: "GET /applications/key",
  load: (target) => ({ ...get("/applications/key", target), requests: withEach(target.keys) }),
};

const readByKeyOfMany: Scenario = {
  name: `GET /applications/key, ${manyConnections} connections`,
  load: (target) => ({ ...readByKey.load(target, []), connections: manyConnections }),
};

const readByKeyOverHttp2: Scenario = {
  name: "GET /applications/key over HTTP/2",
  load: (target) => ({ ...readByKey.load(target, []), protocol: "http2" }),
};

const readByKeyOverConnect: Scenario = {
  name: "Connect JSON GetApplicationByKey",
  load: (target) => ({
    ...post(rpcPaths.read, 200, target),
    requests: withEach(target.keys, "{}"),
  }),
};

const readByKeyOverGrpcWeb: Scenario = {
  name: "gRPC-Web GetApplicationByKey",
  load: (target) => ({
    ...post(rpcPaths.read, 200, target),
    contentType: "application/grpc-web+proto",
    requests: withEach(target.keys, grpcFrame("")),
    mustHold: "grpc-status: *0",
  }),
};

const readByKeyOverGrpc: Scenario = {
  name: "gRPC GetApplicationByKey",
  load: (target) => ({ ...call(rpcPaths.read, target), requests: withEach(target.keys) }),
};

const checkOverGrpc: Scenario = {
  name: "gRPC CheckAccess",
  load: (target) => ({
    ...call(rpcPaths.check, target),
    mustHold: allowedInBinary,
    requests: target.keys.private.map(({ key }) => ({
      key: target.keys.checking,
      body: checkOf(key),
    })),
  }),
};

const eachOfBatch = { count: batchSize, name: `– each of the ${batchSize} checks` };

const batchOverGrpc: Scenario = {
  name: `gRPC BatchCheckAccess, ${batchSize} checks of ${batchSize} keys`,
  parts: eachOfBatch,
  load: (target) => batchLoad(target, groupsOf(target.keys)),
};

const batchOfOneKeyOverGrpc: Scenario = {
  name: `gRPC BatchCheckAccess, ${batchSize} checks of one key`,
  parts: eachOfBatch,
  load: (target) => batchLoad(target, target.keys.private.slice(0, batchKeys).map(checksOfOne)),
};

const streamOverGrpc: Scenario = {
  name: "gRPC StreamCheckAccess, each check",
  load: (target) => ({
    ...call(rpcPaths.stream, target),
    protocol: "stream",
    mustHold: allowedInBinary,
    requests: target.keys.private.map(({ key }, at) => ({
      key: target.keys.checking,
      body: bytesOf(StreamCheckAccessRequestSchema, {
        correlationId: String(at),
        check: { key, ...check },
      }),
    })),
  }),
};

const checkOverRest: Scenario = {
  name: "POST /access/check",
  load: (target) => ({
    ...post("/access/check", 200, target),
    mustHold: allowedInJson,
    requests: target.keys.private.map(({ key }) => ({
      key: target.keys.checking,
      body: JSON.stringify({ key, ...check }),
    })),
  }),
};

const batchOverRest: Scenario = {
  name: `POST /access/check-batch, ${batchSize} checks`,
  parts: eachOfBatch,
  load: (target) => ({
    ...post("/access/check-batch", 200, target),
    mustHold: allowedInJson,
    requests: groupsOf(target.keys).map((checks) => ({
      key: target.keys.checking,
      body: JSON.stringify({ checks }),
    })),
  }),
};

const createSession: Scenario = {
  name: "POST /sessions",
  load: (target) => ({
    ...post("/sessions", 201, target),
    requests: [{ key: target.keys.public }],
    keepAnswers: true,
  }),
};

/** Spends the nonces of the sessions that were just made, each once. */
const authorizeSession: Scenario = {
  name: "POST /sessions/authorize",
  load: (target, sessions) => ({
    ...post("/sessions/authorize", 204, target),
    requests: sessions.map((session, at) => ({
      key: target.keys.private[at % target.keys.private.length]?.key ?? "",
      body: JSON.stringify({ nonce: JSON.parse(session).nonce, ...grants }),
    })),
    once: true,
  }),
};

const createApplication: Scenario = {
  name: "POST /applications",
  load: (target) => ({
    ...post("/applications", 201, target),
    requests: [{ key: target.keys.management, body: privateApplication }],
    // Not for the answers, but so that all writes are driven alike.
    keepAnswers: true,
  }),
};

export const scenarios = {
  readByKey,
  readByKeyOfMany,
  readByKeyOverHttp2,
  readByKeyOverConnect,
  readByKeyOverGrpcWeb,
  readByKeyOverGrpc,
  checkOverGrpc,
  batchOverGrpc,
  batchOfOneKeyOverGrpc,
  streamOverGrpc,
  checkOverRest,
  batchOverRest,
  createSession,
  authorizeSession,
  createApplication,
};

export type ScenarioName = keyof typeof scenarios;

export function get(path: string, { port, seconds }: Target) {
  return { protocol: "http1", port, connections, seconds, verb: "GET", path, status: 200 } as const;
}

function post(path: string, status: number, { port, seconds }: Target) {
  return { protocol: "http1", port, connections, seconds, verb: "POST", path, status } as const;
}

function call(path: string, target: Target) {
  return { ...post(path, 0, target), protocol: "grpc" } as const;
}

function withEach(keys: Keys, body?: string | Uint8Array): LoadRequest[] {
  return keys.private.map(({ key }) => (body === undefined ? { key } : { key, body }));
}

/** The message that asks whether a key is allowed something. */
export function checkOf(key: string): Uint8Array {
  return bytesOf(CheckAccessRequestSchema, { key, ...check });
}

function bytesOf<S extends DescMessage>(schema: S, message: MessageInitShape<S>): Uint8Array {
  return toBinary(schema, create(schema, message));
}

function batchLoad(target: Target, batches: readonly Check[][]): Load {
  return {
    ...call(rpcPaths.batch, target),
    mustHold: allowedInBinary,
    requests: batches.map((checks) => ({
      key: target.keys.checking,
      body: bytesOf(BatchCheckAccessRequestSchema, { checks }),
    })),
  };
}

/** Whether one key may have this and that. */
function checksOfOne({ key }: { readonly key: string }): Check[] {
  const { permission, token } = check;
  return Array.from({ length: batchSize }, (_, at) => ({
    key,
    permission,
    token: { container: `${token.container}${at}/` },
  }));
}

/** The checks of one batch after the other. */
function groupsOf({ private: made }: Keys): Check[][] {
  return Array.from({ length: Math.floor(made.length / batchSize) }, (_, at) =>
    made.slice(at * batchSize, (at + 1) * batchSize).map(({ key }) => ({ key, ...check })),
  );
}
