import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CheckRequestSchema } from "../gen/envoy/service/auth/v3/external_auth_pb.js";
import {
  BatchCheckAccessRequestSchema,
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
} from "../gen/latchkey/v1/access_service_pb.js";
import { encodeGrpcFrame } from "./load/http2-client.js";
import { keyHeader, type Load, type LoadRequest } from "./load/load.js";
import {
  applicationUpdate,
  type CreatedApplication,
  type Keys,
  privateApplication,
} from "./seed.js";
import type { Server } from "./servers.js";

/** A kind of request whose cost is measured. */
export interface Scenario {
  readonly name: string;
  /** The number of items of a batch request. */
  readonly items?: number;
  /** Creates the load. Some need the responses of the previous scenario. */
  load(target: LoadTarget, previousResponses: readonly string[]): Load;
}

/** The server of a load and the keys to send. */
export interface LoadTarget {
  readonly server: Pick<Server, "port">;
  readonly keys: Keys;
}

export const connections = 32;
export const batchSize = 100;
/** The number of batches that check a single key. */
const singleKeyBatches = 100;

export const rpcPaths = {
  read: "/latchkey.v1.ApplicationService/GetApplicationByKey",
  check: "/latchkey.v1.AccessService/CheckAccess",
  batch: "/latchkey.v1.AccessService/BatchCheckAccess",
  stream: "/latchkey.v1.AccessService/StreamCheckAccess",
  extAuthz: "/envoy.service.auth.v3.Authorization/Check",
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

/** A check that is decided by a rule. */
export const check = { permission: "token:read", token: { container: "/pci/customer-42/" } };

const forwardQuery = new URLSearchParams({ permission: check.permission, ...check.token });

/** Patterns of an allowed check in JSON and in protobuf. */
const allowedInJson = '"allowed":true';
const allowedInBinary = "\\x08\\x01";

export const readByKey: Scenario = {
  name: "GET /applications/key",
  load: (target) => ({
    ...get("/applications/key", target),
    requests: createRequestPerKey(target.keys),
  }),
};

const readByKeyOverHttp2: Scenario = {
  name: "GET /applications/key over HTTP/2",
  load: (target) => ({ ...readByKey.load(target, []), protocol: "http2" }),
};

const readByKeyOverConnect: Scenario = {
  name: "Connect JSON GetApplicationByKey",
  load: (target) => ({
    ...post(rpcPaths.read, 200, target),
    requests: createRequestPerKey(target.keys, "{}"),
  }),
};

const readByKeyOverGrpcWeb: Scenario = {
  name: "gRPC-Web GetApplicationByKey",
  load: (target) => ({
    ...post(rpcPaths.read, 200, target),
    contentType: "application/grpc-web+proto",
    requests: createRequestPerKey(target.keys, encodeGrpcFrame("")),
    bodyPattern: "grpc-status: *0",
  }),
};

const readByKeyOverGrpc: Scenario = {
  name: "gRPC GetApplicationByKey",
  load: (target) => ({
    ...call(rpcPaths.read, target),
    requests: createRequestPerKey(target.keys),
  }),
};

const checkOverGrpc: Scenario = {
  name: "gRPC CheckAccess",
  load: (target) => ({
    ...call(rpcPaths.check, target),
    bodyPattern: allowedInBinary,
    requests: target.keys.private.map(({ key }) => ({
      key: target.keys.checking,
      body: encodeCheck(key),
    })),
  }),
};

/** As many headers as Envoy sends for a browser. */
const clientHeaders = {
  ":authority": "api.example.com",
  ":method": "GET",
  ":path": "/customers/42/cards?page=2",
  ":scheme": "https",
  accept: "application/json, text/plain, */*",
  "accept-encoding": "gzip, deflate, br",
  "accept-language": "en-GB,en;q=0.9",
  origin: "https://shop.example.com",
  referer: "https://shop.example.com/",
  "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  "x-forwarded-proto": "https",
  "x-request-id": "b7c1f0e2-4a5d-4c3b-9e8f-1a2b3c4d5e6f",
};

const extAuthz: Scenario = {
  name: "Envoy ext_authz",
  load: (target) => ({
    ...call(rpcPaths.extAuthz, target),
    bodyPattern: "x-latchkey-application-id",
    requests: target.keys.private.map(({ key }) => ({
      key: target.keys.checking,
      body: encode(CheckRequestSchema, {
        attributes: {
          source: { address: { socketAddress: { address: "203.0.113.7" } } },
          request: {
            http: {
              method: "GET",
              host: "api.example.com",
              path: "/customers/42/cards?page=2",
              headers: { ...clientHeaders, [keyHeader]: key },
            },
          },
          contextExtensions: {
            "latchkey-permission": check.permission,
            "latchkey-container": check.token.container,
          },
        },
      }),
    })),
  }),
};

const forwardAuth: Scenario = {
  name: "GET /access/forward",
  load: (target) => ({
    ...get(`/access/forward?${forwardQuery}`, target),
    requests: target.keys.private.map(({ key }) => ({
      key,
      headers: { "svc-guard-key": target.keys.checking },
    })),
  }),
};

const batchOverGrpc: Scenario = {
  name: `gRPC BatchCheckAccess, ${batchSize} checks of ${batchSize} keys`,
  items: batchSize,
  load: (target) => batchLoad(target, createBatches(target.keys)),
};

const batchSingleKeyOverGrpc: Scenario = {
  name: `gRPC BatchCheckAccess, ${batchSize} checks of one key`,
  items: batchSize,
  load: (target) =>
    batchLoad(target, target.keys.private.slice(0, singleKeyBatches).map(createChecksOfKey)),
};

const streamOverGrpc: Scenario = {
  name: "gRPC StreamCheckAccess, each check",
  load: (target) => ({
    ...call(rpcPaths.stream, target),
    protocol: "stream",
    bodyPattern: allowedInBinary,
    requests: target.keys.private.map(({ key }, index) => ({
      key: target.keys.checking,
      body: encode(StreamCheckAccessRequestSchema, {
        correlationId: String(index),
        check: toMessage({ key, ...check }),
      }),
    })),
  }),
};

const checkOverRest: Scenario = {
  name: "POST /access/check",
  load: (target) => ({
    ...post("/access/check", 200, target),
    bodyPattern: allowedInJson,
    requests: target.keys.private.map(({ key }) => ({
      key: target.keys.checking,
      body: JSON.stringify({ key, ...check }),
    })),
  }),
};

const batchOverRest: Scenario = {
  name: `POST /access/check-batch, ${batchSize} checks`,
  items: batchSize,
  load: (target) => ({
    ...post("/access/check-batch", 200, target),
    bodyPattern: allowedInJson,
    requests: createBatches(target.keys).map((checks) => ({
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
    keepResponses: true,
  }),
};

/** Uses each nonce of the sessions that the previous scenario created. */
const authorizeSession: Scenario = {
  name: "POST /sessions/authorize",
  load: (target, sessions) => ({
    ...post("/sessions/authorize", 204, target),
    requests: sessions.map((session, index) => ({
      key: target.keys.private[index % target.keys.private.length]?.key ?? "",
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
  }),
};

/** How many applications one load updates. */
const updatedApplications = 1_000;
let updateLoads = 0;

/** Renames other applications in each load. A name is never repeated, because such an update changes nothing. */
const updateApplication: Scenario = {
  name: "PUT /applications",
  load: (target) => {
    const { management, private: all } = target.keys;
    const load = updateLoads++;
    const start = (load * updatedApplications) % all.length;
    const applications = all.slice(start, start + updatedApplications);
    const rename = (name: string) => (application: CreatedApplication) => ({
      key: management,
      path: `/applications/${application.id}`,
      body: applicationUpdate(name),
    });
    const requests = ["First", "Second", "Third"].flatMap((name) =>
      applications.map(rename(`${name} name of load ${load}`)),
    );
    return { ...get("/applications", target), verb: "PUT", requests };
  },
};

export const pageSize = 20;

const listApplications: Scenario = {
  name: "GET /applications",
  load: (target) => ({
    ...get(`/applications?size=${pageSize}`, target),
    requests: [{ key: target.keys.management }],
  }),
};

export const scenarios = {
  readByKey,
  readByKeyOverHttp2,
  readByKeyOverConnect,
  readByKeyOverGrpcWeb,
  readByKeyOverGrpc,
  checkOverGrpc,
  extAuthz,
  forwardAuth,
  batchOverGrpc,
  batchSingleKeyOverGrpc,
  streamOverGrpc,
  checkOverRest,
  batchOverRest,
  createSession,
  authorizeSession,
  createApplication,
  updateApplication,
  listApplications,
};

export type ScenarioName = keyof typeof scenarios;

export function get(path: string, { server: { port } }: LoadTarget) {
  return { protocol: "http1", port, connections, verb: "GET", path, status: 200 } as const;
}

function post(path: string, status: number, { server: { port } }: LoadTarget) {
  return { protocol: "http1", port, connections, verb: "POST", path, status } as const;
}

function call(path: string, target: LoadTarget) {
  return { ...post(path, 0, target), protocol: "grpc" } as const;
}

function createRequestPerKey(keys: Keys, body?: string | Uint8Array): LoadRequest[] {
  return keys.private.map(({ key }) => (body === undefined ? { key } : { key, body }));
}

export function encodeCheck(key: string): Uint8Array {
  return encode(CheckAccessRequestSchema, toMessage({ key, ...check }));
}

function toMessage({ key, ...others }: Check) {
  return { principal: { case: "key" as const, value: key }, ...others };
}

function encode<S extends DescMessage>(schema: S, message: MessageInitShape<S>): Uint8Array {
  return toBinary(schema, create(schema, message));
}

function batchLoad(target: LoadTarget, batches: readonly Check[][]): Load {
  return {
    ...call(rpcPaths.batch, target),
    bodyPattern: allowedInBinary,
    requests: batches.map((checks) => ({
      key: target.keys.checking,
      body: encode(BatchCheckAccessRequestSchema, { checks: checks.map(toMessage) }),
    })),
  };
}

/** Creates the checks of one key for different containers. */
function createChecksOfKey({ key }: { readonly key: string }): Check[] {
  const { permission, token } = check;
  return Array.from({ length: batchSize }, (_, index) => ({
    key,
    permission,
    token: { container: `${token.container}${index}/` },
  }));
}

/** Groups the checks of all keys into batches. */
function createBatches({ private: applications }: Keys): Check[][] {
  return Array.from({ length: Math.floor(applications.length / batchSize) }, (_, index) =>
    applications
      .slice(index * batchSize, (index + 1) * batchSize)
      .map(({ key }) => ({ key, ...check })),
  );
}
