import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { expectProblem, send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

let base: TestServer;
let server: TestServer;
let isReachable: boolean;
let pings: number;

beforeAll(async () => {
  base = await startServer();
});

afterAll(() => base.close());

beforeEach(async () => {
  isReachable = true;
  pings = 0;
  const ping = async () => {
    pings++;
    if (!isReachable) {
      throw new StoreUnavailable("connection to 10.0.0.1:27017 refused");
    }
  };
  server = await startServer("lmdb", {
    environment: { SHUTDOWN_GRACE: "1h" },
    store: overrideStore(base.store, { ping }),
  });
});

afterEach(() => server.close());

const health = () => createClient(Health, createGrpcTransport({ baseUrl: server.url }));

describe("/healthz", () => {
  it("returns 200 without a key, whatever the state of the store", async () => {
    isReachable = false;
    const { status, headers, body } = await send(server, "/healthz");
    expect([status, headers["content-type"], body]).toEqual([
      200,
      "application/json",
      '{"status":"ok"}',
    ]);
    expect(pings).toBe(0);
  });
});

describe("/readyz", () => {
  it("returns 200 while the store responds", async () => {
    const { status, body } = await send(server, "/readyz");
    expect([status, body]).toEqual([200, '{"status":"ready"}']);
  });

  it("returns 503 with Retry-After and without details while the store does not respond", async () => {
    isReachable = false;
    const response = await send(server, "/readyz");
    expectProblem(response, 503, "store_unavailable");
    expect(response.headers["retry-after"]).toBe("1");
    expect(response.body).not.toContain("10.0.0.1");
  });

  it("reuses ping results, so that callers cannot overload the store", async () => {
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 50 }, () => send(server, "/readyz")));
    // A result is reused for half a second.
    expect(pings).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 499);
  });

  it("returns 503 when the store is closed", async () => {
    const other = await startServer();
    await other.store.close();
    expectProblem(await send(other, "/readyz"), 503, "store_unavailable");
    await other.close();
  });
});

describe("grpc.health.v1.Health/Check", () => {
  it.each(["", "latchkey.v1.ApplicationService", "latchkey.v1.SessionService"])(
    "returns SERVING for %j",
    async (service) => {
      expect((await health().check({ service })).status).toBe(Status.SERVING);
    },
  );

  it("returns NOT_SERVING while the store does not respond", async () => {
    isReachable = false;
    expect((await health().check({})).status).toBe(Status.NOT_SERVING);
  });

  it("returns NOT_FOUND for an unknown service", async () => {
    const error = await health()
      .check({ service: "latchkey.v1.Nothing" })
      .catch((reason) => reason);
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.code).toBe(Code.NotFound);
  });
});

describe("grpc.health.v1.Health/Watch", () => {
  /** Watches and records every status. */
  function watch(service = "") {
    const statuses: Status[] = [];
    const abort = new AbortController();
    const ended = (async () => {
      for await (const { status } of health().watch({ service }, { signal: abort.signal })) {
        statuses.push(status);
      }
    })();
    return { statuses, ended, stop: () => abort.abort() };
  }

  const untilStatuses = (statuses: Status[], ...expected: Status[]) =>
    until(async () => JSON.stringify(statuses) === JSON.stringify(expected));

  it("yields SERVING and then each change", async () => {
    const { statuses, ended, stop } = watch();
    await untilStatuses(statuses, Status.SERVING);
    isReachable = false;
    await untilStatuses(statuses, Status.SERVING, Status.NOT_SERVING);
    isReachable = true;
    await untilStatuses(statuses, Status.SERVING, Status.NOT_SERVING, Status.SERVING);
    stop();
    await expect(ended).rejects.toThrow();
  });

  it("yields SERVICE_UNKNOWN for an unknown service and stays open", async () => {
    const { statuses, ended, stop } = watch("latchkey.v1.Nothing");
    await untilStatuses(statuses, Status.SERVICE_UNKNOWN);
    stop();
    await expect(ended).rejects.toThrow();
  });

  it.each(["", "latchkey.v1.Nothing"])("ends when the server closes, for %j", async (service) => {
    const { statuses, ended } = watch(service);
    await until(async () => statuses.length === 1);
    const closed = server.close();
    await ended.catch(() => {});
    await closed;
    if (service === "") {
      expect(statuses).toEqual([Status.SERVING, Status.NOT_SERVING]);
    }
  });

  it("ends when its caller cancels", async () => {
    const watches = Array.from({ length: 20 }, () => watch());
    for (const { statuses, ended, stop } of watches) {
      await until(async () => statuses.length === 1);
      stop();
      await expect(ended).rejects.toThrow();
    }
  });
});
