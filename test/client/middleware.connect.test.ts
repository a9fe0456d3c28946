import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { isMessage } from "@bufbuild/protobuf";
import {
  type CallOptions,
  Code,
  ConnectError,
  type ConnectRouter,
  createClient,
  createContextValues,
  type HandlerContext,
  type Transport,
} from "@connectrpc/connect";
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterEach, describe, expect, it } from "@jest/globals";
import { Health, HealthCheckRequestSchema } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  accessKey,
  accessOf,
  createGuardInterceptor,
  type GuardInterceptorOptions,
} from "../../src/client/connect.js";
import type { Decision } from "../../src/client/decision.js";
import type { Guard } from "../../src/client/guard.js";
import { defaultKeyHeader } from "../../src/contract/headers.js";
import {
  type AccessGetter,
  type CallResult,
  createFakeGuard,
  describeMiddleware,
  type GuardedRequest,
  type GuardedService,
  keys,
} from "./middleware-suite.js";

const protocols = {
  gRPC: (baseUrl: string) => createGrpcTransport({ baseUrl }),
  "gRPC-Web": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  Connect: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" }),
};

/** One method of each kind, called with one message. */
const methods = {
  unary: async (transport: Transport, options: CallOptions) =>
    void (await createClient(Health, transport).check({ service: "cards" }, options)),
  "server streaming": async (transport: Transport, options: CallOptions) =>
    readAll(createClient(Health, transport).watch({ service: "cards" }, options)),
  "bidi streaming": async (transport: Transport, options: CallOptions) =>
    readAll(createClient(ServerReflection, transport).serverReflectionInfo(one(), options)),
};

async function* one() {
  yield { host: "cards" };
}

async function readAll(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _message of messages) {
    // Only the result matters.
  }
}

function createRoutes(handled: AccessGetter[]) {
  const handle = (context: HandlerContext) => {
    handled.push(() => accessOf(context));
    return {};
  };
  return (router: ConnectRouter) => {
    router.service(Health, {
      check: (_request, context) => handle(context),
      async *watch(_request, context) {
        yield handle(context);
      },
    });
    router.service(ServerReflection, {
      async *serverReflectionInfo(_requests, context) {
        yield handle(context);
      },
    });
  };
}

async function serve(
  guard: Guard,
  options: GuardInterceptorOptions,
  call: (url: string, request: GuardedRequest) => Promise<CallResult>,
): Promise<GuardedService> {
  const handled: AccessGetter[] = [];
  const interceptors = [createGuardInterceptor(guard, options)];
  const adapter = connectNodeAdapter({ routes: createRoutes(handled), interceptors });
  const server = createServer(adapter).listen(0, "127.0.0.1");
  const sessions: ServerHttp2Session[] = [];
  server.on("session", (session) => sessions.push(session));
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    call: (request) => call(url, request),
    handled,
    async close() {
      server.close();
      // Clients keep their connections open for later calls.
      for (const session of sessions) {
        session.destroy();
      }
    },
  };
}

async function callWith(
  call: (options: CallOptions) => Promise<void>,
  { keys, header = defaultKeyHeader, origin, authorization }: GuardedRequest,
): Promise<CallResult> {
  const headers = new Headers(keys.map((key) => [header, key]));
  if (origin !== undefined) {
    headers.set("origin", origin);
  }
  if (authorization !== undefined) {
    headers.set("authorization", authorization);
  }
  try {
    await call({ headers });
    return { status: 0, detail: "", headers: {}, raw: "" };
  } catch (thrown) {
    const { code, rawMessage, metadata } = ConnectError.from(thrown);
    metadata.delete("date");
    const responseHeaders = Object.fromEntries(metadata);
    const raw = JSON.stringify([code, rawMessage, responseHeaders]);
    return { status: code, detail: rawMessage, headers: responseHeaders, raw };
  }
}

for (const [protocol, createTransport] of Object.entries(protocols)) {
  for (const [kind, call] of Object.entries(methods)) {
    describeMiddleware(`the interceptor for Connect, ${kind}, over ${protocol}`, {
      protocol: "grpc",
      start: (guard, options) =>
        serve(guard, options, (url, request) =>
          callWith((callOptions) => call(createTransport(url), callOptions), request),
        ),
    });
  }
}

describe("the interceptor for Connect", () => {
  let service: GuardedService | undefined;
  afterEach(() => service?.close());

  const check = (url: string, request: GuardedRequest) =>
    callWith((options) => methods.unary(protocols.gRPC(url), options), request);

  it("passes the request to the functions of the options", async () => {
    const guard = createFakeGuard();
    service = await serve(
      guard,
      {
        permission: ({ method }) => `health:${method.name.toLowerCase()}`,
        token: ({ message }) =>
          isMessage(message, HealthCheckRequestSchema) ? { id: message.service } : undefined,
      },
      check,
    );
    await service.call({ keys: [keys.good] });
    expect(guard.checks).toEqual([[keys.good, "health:check", { id: "cards" }]]);
  });

  it("passes on a ConnectError of a function in the options", async () => {
    const token = () => {
      throw new ConnectError("no such token", Code.NotFound);
    };
    const options = { permission: "token:read", token };
    service = await serve(createFakeGuard(), options, check);
    expect(await service.call({ keys: [keys.good] })).toMatchObject({
      status: Code.NotFound,
      detail: "no such token",
    });
    expect(service.handled).toEqual([]);
  });

  it("stores the decision in the context of the call", () => {
    const values = createContextValues();
    expect(() => accessOf({ values })).toThrow("The request was not checked");
    const decision: Decision = { allowed: true, source: "cache", staleness: 3 };
    expect(accessOf({ values: values.set(accessKey, decision) })).toBe(decision);
  });
});
