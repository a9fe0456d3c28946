import type { Load, LoadRequest } from "./load/load.js";
import { connections, type Keys, privateApplication } from "./seed.js";

/** A kind of request whose cost is measured. */
export interface Scenario {
  readonly name: string;
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

/** In the order in which they are run: the one that authorizes follows the one that makes sessions. */
export const scenarios: readonly Scenario[] = [
  readByKey,
  readByKeyOverGrpc,
  createSession,
  authorizeSession,
  createApplication,
];

function post(path: string, status: number, port: number, seconds: number) {
  return { protocol: "rest", port, connections, seconds, verb: "POST", path, status } as const;
}

function withEach(keys: readonly string[]): LoadRequest[] {
  return keys.map((key) => ({ key }));
}
