import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { Environment } from "../../src/config/settings.js";
import { newId } from "../../src/lib/uuid.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import { contentOf } from "../contract/store/fixtures.js";
import { keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { expectProblem, send } from "../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { createPausableStore, overrideStore } from "../support/service/store.js";
import { until } from "../support/until.js";

const byKeyRpc = "/latchkey.v1.ApplicationService/GetApplicationByKey";
const listRpc = "/latchkey.v1.ApplicationService/ListApplications";

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

const key = () => ({ "svc-api-key": root.key });

/** A store whose list methods fail with the given error. */
function failing(reason: unknown): Store {
  const list = () => Promise.reject(reason);
  return overrideStore(base.store, { applications: { list } });
}

describe("a call that takes longer than REQUEST_TIMEOUT", () => {
  it("fails with 504 and DEADLINE_EXCEEDED on every protocol", async () => {
    const store = createPausableStore(base.store);
    const { url, port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.pauseReads();
    const rest = await send({ port }, "/applications/key", { headers: key() });
    expectProblem(rest, 504, "deadline_exceeded");
    expect(rest.headers["retry-after"]).toBe("1");
    const grpc = await callRaw({ url }, byKeyRpc, { headers: key(), body: envelope("") });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
    expect(detailsOf(grpc).info?.reason).toBe("DEADLINE_EXCEEDED");
    const connect = await send({ port }, byKeyRpc, {
      method: "POST",
      headers: { ...key(), "content-type": "application/json" },
      body: "{}",
    });
    expect([connect.status, JSON.parse(connect.body).code]).toEqual([504, "deadline_exceeded"]);
    expect(logs.map(({ code }) => code)).toEqual(Array(3).fill("deadline_exceeded"));
    store.resumeReads();
  });

  it("may fail later without an unhandled rejection", async () => {
    let fail = (_reason: Error) => {};
    const list = () =>
      new Promise<never>((_, reject) => {
        fail = reject;
      });
    const store = overrideStore(base.store, { applications: { list } });
    const { port } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    const response = await send({ port }, "/applications", { headers: key() });
    expectProblem(response, 504, "deadline_exceeded");
    fail(new Error("too late"));
    expect((await send({ port }, "/healthz")).status).toBe(200);
  });

  it("includes the time to receive its body", async () => {
    const { port } = await startOn(base.store, { REQUEST_TIMEOUT: "30ms" });
    const headers = { ...key(), "content-type": "application/json", "content-length": 100 };
    const response = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(response, 504, "deadline_exceeded");
  });
});

describe("an unreachable store", () => {
  const secret = "connect ECONNREFUSED mongodb://admin:hunter2@10.0.0.1:27017";

  it("returns 503 with Retry-After over REST, without driver messages", async () => {
    const { port } = await startOn(failing(new StoreUnavailable(secret)));
    const response = await send({ port }, "/applications", { headers: key() });
    expectProblem(response, 503, "store_unavailable");
    expect(response.headers["retry-after"]).toBe("1");
    expect(response.body).not.toMatch(/ECONN|mongodb|10\.0\.0\.1|hunter2/);
  });

  it("returns UNAVAILABLE with RetryInfo over gRPC, without driver messages", async () => {
    const { url } = await startOn(failing(new StoreUnavailable(secret)));
    const response = await callRaw({ url }, listRpc, { headers: key(), body: envelope("") });
    expect(response.headers["grpc-status"]).toBe(String(Code.Unavailable));
    const { info, find } = detailsOf(response);
    expect(info?.reason).toBe("STORE_UNAVAILABLE");
    expect(find(RetryInfoSchema)?.retryDelay).toMatchObject({ seconds: 1n, nanos: 0 });
    expect(JSON.stringify(response.headers)).not.toMatch(/ECONN|mongodb|hunter2/);
  });

  it("is logged as a warning with the request id and the cause", async () => {
    const { port, logs } = await startOn(failing(new StoreUnavailable(secret)));
    const response = await send({ port }, "/applications", { headers: key() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: 40,
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
    const response = await send({ port }, "/applications/key", { headers: key() });
    expectProblem(response, 503, "store_unavailable");
  });
});

describe("the log line of a failed call", () => {
  it.each<[what: string, reason: unknown]>([
    ["as the store cannot be reached", new StoreUnavailable("away")],
    ["by a mistake of ours", new Error("a mistake")],
  ])("%s contains neither the key nor other headers", async (_what, reason) => {
    const { port, url, logs } = await startOn(failing(reason));
    const headers = { ...key(), authorization: "hunter2" };
    await send({ port }, "/applications", { headers });
    await callRaw({ url }, listRpc, { headers, body: envelope("") });
    expect(logs).toHaveLength(2);
    expect(JSON.stringify(logs)).not.toContain(root.key);
    expect(JSON.stringify(logs)).not.toContain("hunter2");
  });
});

describe("an unexpected store error", () => {
  const reasons: [what: string, reason: unknown][] = [
    ["an error", new Error("E11000 dup key in latchkey.applications at /srv/app/store.js:12")],
    ["an error of a driver", Object.assign(new Error("hunter2"), { code: 11000, codeName: "x" })],
    ["a text", "hunter2"],
    ["nothing", undefined],
    ["null", null],
  ];

  it.each(reasons)("returns 500 and INTERNAL without its message: %s", async (_what, reason) => {
    const { port, url } = await startOn(failing(reason));
    const rest = await send({ port }, "/applications", { headers: key() });
    expectProblem(rest, 500, "internal");
    const grpc = await callRaw({ url }, listRpc, { headers: key(), body: envelope("") });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.Internal));
    for (const text of [rest.body, JSON.stringify(grpc.headers)]) {
      expect(text).not.toMatch(/E11000|hunter2|\/srv|store\.js|at .*:\d+/);
    }
  });

  it("is logged as an error with the request id and its message", async () => {
    const reason = new Error("what went wrong");
    const { port, logs } = await startOn(failing(reason));
    const response = await send({ port }, "/applications", { headers: key() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: 50,
        request_id: response.headers["x-request-id"],
        code: "internal",
        err: expect.objectContaining({ message: "what went wrong", stack: expect.any(String) }),
      }),
    ]);
  });

  it("is handled the same way for a response that cannot be encoded", async () => {
    const find: Store["applications"]["find"] = async (id) => {
      const found = await base.store.applications.find(id);
      return found && { ...(contentOf(found) as typeof found), createdAt: 9e15 };
    };
    const { port, logs } = await startOn(overrideStore(base.store, { applications: { find } }));
    const response = await send({ port }, "/applications/key", { headers: key() });
    expectProblem(response, 500, "internal");
    await until(async () => logs.some(({ level }) => level === 50));
    expect(logs.find(({ level }) => level === 50)).toMatchObject({
      request_id: response.headers["x-request-id"],
      err: { message: expect.stringMatching(/./) },
    });
  });
});

describe("interceptors run in order: observe, deadline, authenticate, authorize, validate", () => {
  /** A store that records its calls. */
  function recordCalls(calls: string[]): Store {
    const note = <T extends object>(part: T, name: string): T =>
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
    return overrideStore(base.store, {
      applications: note(applications, "applications"),
      sessions: note(sessions, "sessions"),
    });
  }

  it("stops at the first step that refuses", async () => {
    const weak = keyOf(
      await createRestApi(base.url).createApplication(root.key, {
        name: "weak",
        type: "private",
        permissions: ["token:read"],
      }),
    );
    const calls: string[] = [];
    const { port, logs } = await startOn(recordCalls(calls));
    const put = (sent: string, body: string) =>
      send({ port }, `/applications/${newId(0)}`, {
        method: "PUT",
        headers: { "svc-api-key": sent, "content-type": "application/json" },
        body,
      });
    const good = JSON.stringify({ name: "a", permissions: ["token:read"] });
    expectProblem(await put("mistyped", "{"), 401, "unauthenticated");
    expect(calls).toEqual([]);
    expectProblem(await put(weak, '{"name":""}'), 403, "permission_denied");
    expectProblem(await put(root.key, '{"name":""}'), 400, "invalid_request");
    expect(calls).toEqual(["applications.find", "applications.find"]);
    expectProblem(await put(root.key, good), 404, "application_not_found");
    expect(calls.slice(2)).toEqual(["applications.find", "applications.update"]);
    expect(logs.map(({ code }) => code)).toEqual([
      "unauthenticated",
      "permission_denied",
      "invalid_request",
      "application_not_found",
    ]);
  });

  it("applies the deadline to authentication", async () => {
    const store = createPausableStore(base.store);
    const { port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.pauseReads();
    const headers = { ...key(), "content-type": "application/json" };
    const response = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(response, 504, "deadline_exceeded");
    expect(logs).toEqual([expect.objectContaining({ code: "deadline_exceeded" })]);
    expect(logs[0]).not.toHaveProperty("application_id");
    store.resumeReads();
  });
});
