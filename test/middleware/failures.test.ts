import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { Environment } from "../../src/config/settings.js";
import { newId } from "../../src/lib/uuid.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import { contentOf } from "../contract/store/fixtures.js";
import { keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { expectProblem, send } from "../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { createPausableStore, overrideStore } from "../support/service/store.js";
import { until } from "../support/until.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const listApplicationsPath = rpcPath(ApplicationService.method.listApplications);

let base: TestServer;
let root: BootstrapResult;
let server: TestServer | undefined;

beforeEach(async () => {
  base = await startServer();
  root = await base.createTenant();
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  await base.close();
});

async function startOn(store: Store, environment: Environment = {}): Promise<TestServer> {
  server = await startServer("lmdb", { environment, store });
  return server;
}

const keyHeader = () => ({ "svc-api-key": root.key });

/** A store whose list methods fail with the given error. */
function createFailingStore(reason: unknown): Store {
  const list = () => Promise.reject(reason);
  return overrideStore(base.store, { applications: { list } });
}

describe("a call that takes longer than REQUEST_TIMEOUT", () => {
  it("fails with 504 and DEADLINE_EXCEEDED on every protocol", async () => {
    const store = createPausableStore(base.store);
    const { url, port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.pauseReads();
    const rest = await send({ port }, "/applications/key", { headers: keyHeader() });
    expectProblem(rest, 504, "deadline_exceeded");
    expect(rest.headers["retry-after"]).toBe("1");
    const grpc = await callRaw({ url }, getApplicationByKeyPath, {
      headers: keyHeader(),
      body: envelope(""),
    });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
    expect(detailsOf(grpc).info?.reason).toBe("DEADLINE_EXCEEDED");
    const connect = await send({ port }, getApplicationByKeyPath, {
      method: "POST",
      headers: { ...keyHeader(), "content-type": "application/json" },
      body: "{}",
    });
    expect([connect.status, JSON.parse(connect.body).code]).toEqual([504, "deadline_exceeded"]);
    expect(logs.map(({ code }) => code)).toEqual(Array(3).fill("deadline_exceeded"));
    store.resumeReads();
  });

  it("causes no unhandled rejection if it fails after the response", async () => {
    let fail = (_reason: Error) => {};
    const list = () =>
      new Promise<never>((_, reject) => {
        fail = reject;
      });
    const store = overrideStore(base.store, { applications: { list } });
    const { port } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    const response = await send({ port }, "/applications", { headers: keyHeader() });
    expectProblem(response, 504, "deadline_exceeded");
    fail(new Error("too late"));
    expect((await send({ port }, "/healthz")).status).toBe(200);
  });

  it("includes the time to receive its body", async () => {
    const { port } = await startOn(base.store, { REQUEST_TIMEOUT: "30ms" });
    const headers = { ...keyHeader(), "content-type": "application/json", "content-length": 100 };
    const response = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(response, 504, "deadline_exceeded");
  });
});

describe("an unreachable store", () => {
  const secret = "connect ECONNREFUSED mongodb://admin:hunter2@10.0.0.1:27017";

  it("returns 503 with Retry-After over REST, without driver messages", async () => {
    const { port } = await startOn(createFailingStore(new StoreUnavailable(secret)));
    const response = await send({ port }, "/applications", { headers: keyHeader() });
    expectProblem(response, 503, "store_unavailable");
    expect(response.headers["retry-after"]).toBe("1");
    expect(response.body).not.toMatch(/ECONN|mongodb|10\.0\.0\.1|hunter2/);
  });

  it("returns UNAVAILABLE with RetryInfo over gRPC, without driver messages", async () => {
    const { url } = await startOn(createFailingStore(new StoreUnavailable(secret)));
    const response = await callRaw({ url }, listApplicationsPath, {
      headers: keyHeader(),
      body: envelope(""),
    });
    expect(response.headers["grpc-status"]).toBe(String(Code.Unavailable));
    const { info, find } = detailsOf(response);
    expect(info?.reason).toBe("STORE_UNAVAILABLE");
    expect(find(RetryInfoSchema)?.retryDelay).toMatchObject({ seconds: 1n, nanos: 0 });
    expect(JSON.stringify(response.headers)).not.toMatch(/ECONN|mongodb|hunter2/);
  });

  it("is logged as a warning with the request id and the cause", async () => {
    const { port, logs } = await startOn(createFailingStore(new StoreUnavailable(secret)));
    const response = await send({ port }, "/applications", { headers: keyHeader() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: "warn",
        request_id: response.headers["x-request-id"],
        code: "store_unavailable",
        application_id: root.applicationId,
        err: expect.objectContaining({ message: secret }),
      }),
    ]);
  });

  it("returns 503, not 401, if the key cannot be looked up", async () => {
    const find = () => Promise.reject(new StoreUnavailable(secret));
    const { port } = await startOn(overrideStore(base.store, { applications: { find } }));
    const response = await send({ port }, "/applications/key", { headers: keyHeader() });
    expectProblem(response, 503, "store_unavailable");
  });
});

describe("the log line of a failed call", () => {
  it.each<[name: string, reason: unknown]>([
    ["an unavailable store", new StoreUnavailable("unavailable")],
    ["an unexpected error", new Error("unexpected")],
  ])("contains neither the key nor other headers: %s", async (_name, reason) => {
    const { port, url, logs } = await startOn(createFailingStore(reason));
    const headers = { ...keyHeader(), authorization: "hunter2" };
    await send({ port }, "/applications", { headers });
    await callRaw({ url }, listApplicationsPath, { headers, body: envelope("") });
    expect(logs).toHaveLength(2);
    expect(JSON.stringify(logs)).not.toContain(root.key);
    expect(JSON.stringify(logs)).not.toContain("hunter2");
  });
});

describe("an unexpected store error", () => {
  const reasons: [name: string, reason: unknown][] = [
    ["an error", new Error("E11000 dup key in latchkey.applications at /srv/app/store.js:12")],
    ["a driver error", Object.assign(new Error("hunter2"), { code: 11000, codeName: "x" })],
    ["a string", "hunter2"],
    ["undefined", undefined],
    ["null", null],
  ];

  it.each(reasons)("returns 500 and INTERNAL without its message: %s", async (_name, reason) => {
    const { port, url } = await startOn(createFailingStore(reason));
    const rest = await send({ port }, "/applications", { headers: keyHeader() });
    expectProblem(rest, 500, "internal");
    const grpc = await callRaw({ url }, listApplicationsPath, {
      headers: keyHeader(),
      body: envelope(""),
    });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.Internal));
    for (const text of [rest.body, JSON.stringify(grpc.headers)]) {
      expect(text).not.toMatch(/E11000|hunter2|\/srv|store\.js|at .*:\d+/);
    }
  });

  it("is logged as an error with the request id and its message", async () => {
    const reason = new Error("the cause");
    const { port, logs } = await startOn(createFailingStore(reason));
    const response = await send({ port }, "/applications", { headers: keyHeader() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: "error",
        request_id: response.headers["x-request-id"],
        code: "internal",
        err: expect.objectContaining({ message: "the cause", stack: expect.any(String) }),
      }),
    ]);
  });

  it("is reported in the same way if the response cannot be encoded", async () => {
    const find: Store["applications"]["find"] = async (id) => {
      const found = await base.store.applications.find(id);
      return found && { ...(contentOf(found) as unknown as typeof found), createdAt: 9e15 };
    };
    const { port, logs } = await startOn(overrideStore(base.store, { applications: { find } }));
    const response = await send({ port }, "/applications/key", { headers: keyHeader() });
    expectProblem(response, 500, "internal");
    await until(async () => logs.some(({ level }) => level === "error"));
    expect(logs.find(({ level }) => level === "error")).toMatchObject({
      request_id: response.headers["x-request-id"],
      msg: "unexpected error while handling a request",
      err: { message: expect.stringMatching(/./) },
    });
  });
});

describe("the pipeline: observe, deadline, authenticate, authorize, validate", () => {
  /** A store that records its calls. */
  function recordCalls(calls: string[]): Store {
    const record = <T extends object>(part: T, name: string): T =>
      Object.fromEntries(
        Object.entries(part).map(([method, run]) => [
          method,
          (...args: unknown[]) => {
            calls.push(`${name}.${method}`);
            return run(...args);
          },
        ]),
      ) as T;
    const { applications, sessions } = base.store;
    const { change } = record({ change: base.store.change }, "store");
    return overrideStore(base.store, {
      applications: record(applications, "applications"),
      sessions: record(sessions, "sessions"),
      change,
    });
  }

  it("stop at the first one that refuses the call", async () => {
    const weakKey = keyOf(
      await createRestApi(base.url).createApplication(root.key, {
        name: "weak",
        type: "private",
        permissions: ["token:read"],
      }),
    );
    const calls: string[] = [];
    const { port, logs } = await startOn(recordCalls(calls));
    const put = (apiKey: string, body: string) =>
      send({ port }, `/applications/${newId(0)}`, {
        method: "PUT",
        headers: { "svc-api-key": apiKey, "content-type": "application/json" },
        body,
      });
    const valid = JSON.stringify({ name: "a", permissions: ["token:read"] });
    expectProblem(await put("mistyped", "{"), 401, "unauthenticated");
    expect(calls).toEqual([]);
    expectProblem(await put(weakKey, '{"name":""}'), 403, "permission_denied");
    expectProblem(await put(root.key, '{"name":""}'), 400, "invalid_request");
    expect(calls).toEqual(["applications.find", "applications.find"]);
    expectProblem(await put(root.key, valid), 404, "application_not_found");
    expect(calls.slice(2)).toEqual(["applications.find", "store.change"]);
    expect(logs.map(({ code }) => code)).toEqual([
      "unauthenticated",
      "permission_denied",
      "invalid_request",
      "application_not_found",
    ]);
  });

  it("include authentication in the deadline", async () => {
    const store = createPausableStore(base.store);
    const { port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.pauseReads();
    const headers = { ...keyHeader(), "content-type": "application/json" };
    const response = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(response, 504, "deadline_exceeded");
    expect(logs).toEqual([expect.objectContaining({ code: "deadline_exceeded" })]);
    expect(logs[0]).not.toHaveProperty("application_id");
    store.resumeReads();
  });
});
