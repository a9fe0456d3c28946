import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Client,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type StatusObject,
} from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  accessOf,
  createGuardInterceptor,
  type GuardedCall,
  type GuardInterceptorOptions,
} from "../../src/client/grpc.js";
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

interface Message {
  readonly id: string;
}
const toBytes = (message: Message) => Buffer.from(JSON.stringify(message));
const fromBytes = (bytes: Buffer): Message => JSON.parse(bytes.toString());

function method(path: string, requestStream: boolean, responseStream: boolean) {
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: toBytes,
    responseSerialize: toBytes,
    requestDeserialize: fromBytes,
    responseDeserialize: fromBytes,
  } satisfies MethodDefinition<Message, Message>;
}

const tokens = {
  get: method("/shop.Tokens/Get", false, false),
  watch: method("/shop.Tokens/Watch", false, true),
  send: method("/shop.Tokens/Send", true, false),
  talk: method("/shop.Tokens/Talk", true, true),
};
type MethodName = keyof typeof tokens;
const names = Object.keys(tokens) as MethodName[];

function createHandlers(handled: AccessGetter[]) {
  const get: handleUnaryCall<Message, Message> = (call, callback) => {
    handled.push(() => accessOf(call));
    callback(null, call.request);
  };
  const watch: handleServerStreamingCall<Message, Message> = (call) => {
    handled.push(() => accessOf(call));
    call.write(call.request);
    call.end();
  };
  const send: handleClientStreamingCall<Message, Message> = (call, callback) => {
    handled.push(() => accessOf(call));
    call.on("data", (message) => callback(null, message));
  };
  const talk: handleBidiStreamingCall<Message, Message> = (call) => {
    handled.push(() => accessOf(call));
    call.on("data", (message) => call.write(message));
    call.on("end", () => call.end());
  };
  return { get, watch, send, talk };
}

/** Calls a method with one message. On the wire, a method of any kind is a stream both ways. */
function callMethod(
  client: Client,
  name: MethodName,
  request: GuardedRequest,
): Promise<CallResult> {
  const metadata = new Metadata();
  for (const key of request.keys) {
    metadata.add(request.header ?? defaultKeyHeader, key);
  }
  if (request.origin !== undefined) {
    metadata.set("origin", request.origin);
  }
  if (request.authorization !== undefined) {
    metadata.set("authorization", request.authorization);
  }
  const { path } = tokens[name];
  const call = client.makeBidiStreamRequest(path, toBytes, fromBytes, metadata);
  const received: Message[] = [];
  return new Promise((resolve) => {
    call.on("data", (message) => received.push(message));
    call.on("error", () => {});
    call.on("status", ({ code, details, metadata }: StatusObject) => {
      const { date: _date, ...headers } = metadata.getMap() as Record<string, string>;
      const raw = JSON.stringify([code, details, headers, received]);
      resolve({ status: code, detail: details, headers, raw });
    });
    call.write({ id: "card-1" });
    call.end();
  });
}

const serve = (name: MethodName, ...interceptors: ServerInterceptor[]) =>
  serveAt("127.0.0.1:0", name, ...interceptors);

async function serveAt(address: string, name: MethodName, ...interceptors: ServerInterceptor[]) {
  const handled: AccessGetter[] = [];
  const server = new Server({ interceptors });
  server.addService(tokens, createHandlers(handled));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const client = new Client(address.replace(/:0$/, `:${port}`), credentials.createInsecure());
  return {
    call: (request: GuardedRequest) => callMethod(client, name, request),
    handled,
    async close() {
      client.close();
      server.forceShutdown();
    },
  } satisfies GuardedService;
}

const start = (name: MethodName, guard: Guard, options: GuardInterceptorOptions) =>
  serve(name, createGuardInterceptor(guard, options));

for (const name of names) {
  describeMiddleware(`the interceptor for grpc-js, method ${name}`, {
    protocol: "grpc",
    address: "127.0.0.1",
    start: (guard, options) => start(name, guard, options),
  });
}

describe("the interceptor for grpc-js", () => {
  let service: GuardedService | undefined;
  afterEach(() => service?.close());

  it.each([
    ["get", { id: "card-1" }],
    ["watch", { id: "card-1" }],
    ["send", undefined],
    ["talk", undefined],
  ] as const)(
    "passes the path and the message of the method %s to the functions",
    async (name, message) => {
      const reported: Omit<GuardedCall, "metadata">[] = [];
      service = await start(name, createFakeGuard(), {
        permission: ({ path, message, metadata }) => {
          expect(metadata.get(defaultKeyHeader)).toEqual([keys.good]);
          reported.push({ path, message });
          return "token:read";
        },
      });
      expect((await service.call({ keys: [keys.good] })).status).toBe(0);
      expect(reported).toEqual([{ path: tokens[name].path, message }]);
    },
  );

  it("passes no address for a client on a Unix socket", async () => {
    const folder = await mkdtemp(join(tmpdir(), "latchkey-grpc-"));
    const guard = createFakeGuard();
    const interceptor = createGuardInterceptor(guard, { permission: "token:read" });
    service = await serveAt(`unix:${join(folder, "api.sock")}`, "get", interceptor);
    expect((await service.call({ keys: [keys.good] })).status).toBe(0);
    expect(guard.contexts).toEqual([{ origin: undefined, address: undefined }]);
    await rm(folder, { recursive: true });
  });

  it("reads the token from the message", async () => {
    const guard = createFakeGuard();
    service = await start("get", guard, {
      permission: "token:read",
      token: ({ message }) => ({ id: (message as Message).id }),
    });
    await service.call({ keys: [keys.good] });
    expect(guard.checks).toEqual([[keys.good, "token:read", { id: "card-1" }]]);
  });

  it.each(names)("reports errors of functions in the options, for the method %s", async (name) => {
    const bug = new Error("a bug");
    const reported: unknown[] = [];
    service = await start(name, createFakeGuard(), {
      permission: () => {
        throw bug;
      },
      onError: (error) => reported.push(error),
    });
    await service.call({ keys: [keys.good] });
    expect(reported).toEqual([bug]);
  });

  it("can be skipped for some methods, whose handlers have no decision", async () => {
    const guarded = createGuardInterceptor(createFakeGuard(), { permission: "token:read" });
    const interceptor: ServerInterceptor = (method, call) =>
      method.path === tokens.get.path ? new ServerInterceptingCall(call) : guarded(method, call);
    service = await serve("get", interceptor);
    expect((await service.call({ keys: [] })).status).toBe(0);
    const [access] = service.handled;
    expect(access).toThrow("The request was not checked");
  });

  it("runs no handler for a call that was canceled meanwhile", async () => {
    const guard = createFakeGuard();
    let allow = () => {};
    const pending = new Promise<void>((resolve) => {
      guard.check = async () => {
        resolve();
        await new Promise<void>((open) => {
          allow = open;
        });
        return { allowed: true, source: "service", staleness: 0 };
      };
    });
    service = await start("talk", guard, { permission: "token:read" });
    const call = service.call({ keys: [keys.good] });
    await pending;
    await service.close();
    expect((await call).status).not.toBe(0);
    allow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.handled).toEqual([]);
  });
});
