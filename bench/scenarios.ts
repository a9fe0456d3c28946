import { create, toBinary } from "@bufbuild/protobuf";
import { CheckAccessRequestSchema } from "../gen/latchkey/v1/access_service_pb.js";
import type { Load, LoadRequest } from "./load/load.js";
import { connections, type Keys, privateApplication } from "./seed.js";

/** A kind of request whose cost is measured. */
export interface Scenario {
  readonly name: string;
  /** Where a request holds many things to do: how many, and what to call one of them. */
  readonly parts?: { readonly count: number; readonly name: string };
  /** The requests to send, given the answers to the scenario before. */
  load(port: number, keys: Keys, seconds: number, answersBefore: readonly string[]): Load;
}

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

export const readByKey: Scenario = {
  name: "GET /applications/key",
  load: (port, keys, seconds) => ({
    protocol: "rest",
    port,
    connections,
    seconds,
    verb: "GET",
    path: "/applications/key",
    status: 200,
    requests: withEach(keys.private),
  }),
};

const readByKeyOverGrpc: Scenario = {
  name: "gRPC GetApplicationByKey",
  load: (port, keys, seconds) => ({
    protocol: "grpc",
    port,
    connections,
    seconds,
    verb: "POST",
    path: "/latchkey.v1.ApplicationService/GetApplicationByKey",
    status: 0,
    requests: withEach(keys.private),
  }),
};

const createSession: Scenario = {
  name: "POST /sessions",
  load: (port, keys, seconds) => ({
    ...post("/sessions", 201, port, seconds),
    requests: [{ key: keys.public }],
    keepAnswers: true,
  }),
};

/** Spends the nonces of the sessions that were just made, each once. */
const authorizeSession: Scenario = {
  name: "POST /sessions/authorize",
  load: (port, keys, seconds, sessions) => ({
    ...post("/sessions/authorize", 204, port, seconds),
    requests: sessions.map((session, at) => ({
      key: keys.private[at % keys.private.length] as string,
      body: JSON.stringify({ nonce: JSON.parse(session).nonce, ...grants }),
    })),
    once: true,
  }),
};

const createApplication: Scenario = {
  name: "POST /applications",
  load: (port, keys, seconds) => ({
    ...post("/applications", 201, port, seconds),
    requests: [{ key: keys.management, body: privateApplication }],
  }),
};

/** A check that a rule decides. */
export const check = { permission: "token:read", token: { container: "/pci/customer-42/" } };

const checkAccess: Scenario = {
  name: "POST /access/check",
  load: (port, keys, seconds) => ({
    ...post("/access/check", 200, port, seconds),
    requests: keys.private.map((key) => ({
      key: keys.checking,
      body: JSON.stringify({ key, ...check }),
    })),
  }),
};

const checkAccessOverGrpc: Scenario = {
  name: "gRPC CheckAccess",
  load: (port, keys, seconds) => ({
    ...post("/latchkey.v1.AccessService/CheckAccess", 0, port, seconds),
    protocol: "grpc",
    requests: keys.private.map((key) => {
      const message = create(CheckAccessRequestSchema, { key, ...check });
      const bytes = toBinary(CheckAccessRequestSchema, message);
      return { key: keys.checking, body: Buffer.from(bytes).toString("base64") };
    }),
  }),
};

const batchSize = 100;

const batchCheckAccess: Scenario = {
  name: `POST /access/check-batch, ${batchSize} checks`,
  parts: { count: batchSize, name: `– each of the ${batchSize} checks` },
  load: (port, keys, seconds) => ({
    ...post("/access/check-batch", 200, port, seconds),
    requests: inGroups(keys.private, batchSize).map((group) => ({
      key: keys.checking,
      body: JSON.stringify({ checks: group.map((key) => ({ key, ...check })) }),
    })),
  }),
};

/** In the order in which they are run: the one that authorizes follows the one that makes sessions. */
export const scenarios: readonly Scenario[] = [
  readByKey,
  readByKeyOverGrpc,
  createSession,
  authorizeSession,
  createApplication,
  checkAccess,
  checkAccessOverGrpc,
  batchCheckAccess,
];

function post(path: string, status: number, port: number, seconds: number) {
  return { protocol: "rest", port, connections, seconds, verb: "POST", path, status } as const;
}

function withEach(keys: readonly string[]): LoadRequest[] {
  return keys.map((key) => ({ key }));
}

function inGroups<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.floor(items.length / size) }, (_, at) =>
    items.slice(at * size, (at + 1) * size),
  );
}
