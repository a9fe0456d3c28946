import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { Bootstrapped } from "../../src/bootstrap.js";
import type { Environment } from "../../src/config/settings.js";
import { newId } from "../../src/lib/uuid.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import { contentOf } from "../contract/store/fixtures.js";
import { keyOf } from "../support/api.js";
import { createRestApi } from "../support/api-rest.js";
import { expectProblem, send } from "../support/http.js";
import { callRaw, detailsOf, envelope } from "../support/raw-grpc.js";
import { startServer, type TestServer } from "../support/server.js";
import { changed, gated } from "../support/store.js";
import { until } from "../support/until.js";

const byKeyRpc = "/latchkey.v1.ApplicationService/GetApplicationByKey";
const listRpc = "/latchkey.v1.ApplicationService/ListApplications";

let base: TestServer;
let root: Bootstrapped;
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

/** A store whose lists fail, with what is given. */
function failing(reason: unknown): Store {
  const list = () => Promise.reject(reason);
  return changed(base.store, { applications: { list } });
}

describe("a call that takes longer than REQUEST_TIMEOUT", () => {
  it("is answered with 504 and DEADLINE_EXCEEDED on every protocol", async () => {
    const store = gated(base.store);
    const { url, port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.shut();
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
    store.open();
  });

  it("may fail later without anyone to tell", async () => {
    let fail = (_reason: Error) => {};
    const list = () =>
      new Promise<never>((_, reject) => {
        fail = reject;
      });
    const store = changed(base.store, { applications: { list } });
    const { port } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    const answer = await send({ port }, "/applications", { headers: key() });
    expectProblem(answer, 504, "deadline_exceeded");
    fail(new Error("too late"));
    expect((await send({ port }, "/healthz")).status).toBe(200);
  });

  it("includes the time that its body takes to arrive", async () => {
    const { port } = await startOn(base.store, { REQUEST_TIMEOUT: "30ms" });
    const headers = { ...key(), "content-type": "application/json", "content-length": 100 };
    const answer = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(answer, 504, "deadline_exceeded");
  });
});

describe("a store that cannot be reached", () => {
  const secret = "connect ECONNREFUSED mongodb://admin:hunter2@10.0.0.1:27017";

  it("is 503 with Retry-After over REST, and nothing of the driver's words", async () => {
    const { port } = await startOn(failing(new StoreUnavailable(secret)));
    const answer = await send({ port }, "/applications", { headers: key() });
    expectProblem(answer, 503, "store_unavailable");
    expect(answer.headers["retry-after"]).toBe("1");
    expect(answer.body).not.toMatch(/ECONN|mongodb|10\.0\.0\.1|hunter2/);
  });

  it("is UNAVAILABLE with RetryInfo over gRPC, and nothing of the driver's words", async () => {
    const { url } = await startOn(failing(new StoreUnavailable(secret)));
    const answer = await callRaw({ url }, listRpc, { headers: key(), body: envelope("") });
    expect(answer.headers["grpc-status"]).toBe(String(Code.Unavailable));
    const { info, find } = detailsOf(answer);
    expect(info?.reason).toBe("STORE_UNAVAILABLE");
    expect(find(RetryInfoSchema)?.retryDelay).toMatchObject({ seconds: 1n, nanos: 0 });
    expect(JSON.stringify(answer.headers)).not.toMatch(/ECONN|mongodb|hunter2/);
  });

  it("is a warning in the log, with the request id and the cause", async () => {
    const { port, logs } = await startOn(failing(new StoreUnavailable(secret)));
    const answer = await send({ port }, "/applications", { headers: key() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: 40,
        request_id: answer.headers["x-request-id"],
        code: "store_unavailable",
        application_id: root.applicationId,
        err: expect.objectContaining({ message: secret }),
      }),
    ]);
  });

  it("keeps nobody out while it looks at the key: that is 503 too, and not 401", async () => {
    const find = () => Promise.reject(new StoreUnavailable(secret));
    const { port } = await startOn(changed(base.store, { applications: { find } }));
    const answer = await send({ port }, "/applications/key", { headers: key() });
    expectProblem(answer, 503, "store_unavailable");
  });
});

describe("the line in the log about a call that failed", () => {
  it.each<[what: string, reason: unknown]>([
    ["as the store cannot be reached", new StoreUnavailable("away")],
    ["by a mistake of ours", new Error("a mistake")],
  ])("%s holds neither its key nor another of its headers", async (_what, reason) => {
    const { port, url, logs } = await startOn(failing(reason));
    const headers = { ...key(), authorization: "hunter2" };
    await send({ port }, "/applications", { headers });
    await callRaw({ url }, listRpc, { headers, body: envelope("") });
    expect(logs).toHaveLength(2);
    expect(JSON.stringify(logs)).not.toContain(root.key);
    expect(JSON.stringify(logs)).not.toContain("hunter2");
  });
});

describe("a store that fails in another way", () => {
  const reasons: [what: string, reason: unknown][] = [
    ["an error", new Error("E11000 dup key in latchkey.applications at /srv/app/store.js:12")],
    ["an error of a driver", Object.assign(new Error("hunter2"), { code: 11000, codeName: "x" })],
    ["a text", "hunter2"],
    ["nothing", undefined],
    ["null", null],
  ];

  it.each(reasons)("is 500 and INTERNAL without any of its words: %s", async (_what, reason) => {
    const { port, url } = await startOn(failing(reason));
    const rest = await send({ port }, "/applications", { headers: key() });
    expectProblem(rest, 500, "internal");
    const grpc = await callRaw({ url }, listRpc, { headers: key(), body: envelope("") });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.Internal));
    for (const text of [rest.body, JSON.stringify(grpc.headers)]) {
      expect(text).not.toMatch(/E11000|hunter2|\/srv|store\.js|at .*:\d+/);
    }
  });

  it("is an error in the log, with the request id and all of its words", async () => {
    const reason = new Error("what went wrong");
    const { port, logs } = await startOn(failing(reason));
    const answer = await send({ port }, "/applications", { headers: key() });
    expect(logs).toEqual([
      expect.objectContaining({
        level: 50,
        request_id: answer.headers["x-request-id"],
        code: "internal",
        err: expect.objectContaining({ message: "what went wrong", stack: expect.any(String) }),
      }),
    ]);
  });

  it("with an answer that cannot be written is told and logged in the same way", async () => {
    const find: Store["applications"]["find"] = async (id) => {
      const found = await base.store.applications.find(id);
      return found && { ...(contentOf(found) as typeof found), createdAt: 9e15 };
    };
    const { port, logs } = await startOn(changed(base.store, { applications: { find } }));
    const answer = await send({ port }, "/applications/key", { headers: key() });
    expectProblem(answer, 500, "internal");
    await until(async () => logs.some(({ level }) => level === 50));
    expect(logs.find(({ level }) => level === 50)).toMatchObject({
      request_id: answer.headers["x-request-id"],
      err: { message: expect.stringMatching(/./) },
    });
  });
});

describe("a call is observed, given its time, authenticated, authorized and validated in this order", () => {
  /** A store that notes what is asked of it. */
  function noting(asked: string[]): Store {
    const note = <T extends object>(part: T, name: string): T =>
      Object.fromEntries(
        Object.entries(part).map(([method, run]) => [
          method,
          (...args: unknown[]) => {
            asked.push(`${name}.${method}`);
            return run(...args);
          },
        ]),
      ) as T;
    const { applications, sessions } = base.store;
    return changed(base.store, {
      applications: note(applications, "applications"),
      sessions: note(sessions, "sessions"),
    });
  }

  it("refuses at each step, and what follows does not happen", async () => {
    const weak = keyOf(
      await createRestApi(base.url).createApplication(root.key, {
        name: "weak",
        type: "private",
        permissions: ["token:read"],
      }),
    );
    const asked: string[] = [];
    const { port, logs } = await startOn(noting(asked));
    const put = (sent: string, body: string) =>
      send({ port }, `/applications/${newId(0)}`, {
        method: "PUT",
        headers: { "svc-api-key": sent, "content-type": "application/json" },
        body,
      });
    const good = JSON.stringify({ name: "a", permissions: ["token:read"] });
    expectProblem(await put("mistyped", "{"), 401, "unauthenticated");
    expect(asked).toEqual([]);
    expectProblem(await put(weak, '{"name":""}'), 403, "permission_denied");
    expectProblem(await put(root.key, '{"name":""}'), 400, "invalid_request");
    expect(asked).toEqual(["applications.find", "applications.find"]);
    expectProblem(await put(root.key, good), 404, "application_not_found");
    expect(asked.slice(2)).toEqual(["applications.find", "applications.update"]);
    expect(logs.map(({ code }) => code)).toEqual([
      "unauthenticated",
      "permission_denied",
      "invalid_request",
      "application_not_found",
    ]);
  });

  it("has its time while it is authenticated already", async () => {
    const store = gated(base.store);
    const { port, logs } = await startOn(store, { REQUEST_TIMEOUT: "30ms" });
    store.shut();
    const headers = { ...key(), "content-type": "application/json" };
    const answer = await send({ port }, "/applications", { method: "POST", headers, body: "{" });
    expectProblem(answer, 504, "deadline_exceeded");
    expect(logs).toEqual([expect.objectContaining({ code: "deadline_exceeded" })]);
    expect(logs[0]).not.toHaveProperty("application_id");
    store.open();
  });
});
