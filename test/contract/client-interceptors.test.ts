import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createRouterTransport,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { createClientOn } from "../../src/client/client.js";
import { retryCalls } from "../../src/contract/client-interceptors.js";

function createError(code: Code, reason?: string, retryAfter?: number): ConnectError {
  const error = new ConnectError("no", code);
  if (reason) {
    error.details.push({ desc: ErrorInfoSchema, value: { reason, domain: "latchkey" } });
  }
  if (retryAfter !== undefined) {
    const retryDelay = durationFromMs(retryAfter);
    error.details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) });
  }
  return error;
}

/** A client of a service that fails with the given errors, then succeeds. */
function createFailingClient(failures: readonly unknown[], onWait = () => {}) {
  const idempotencyKeys: (string | null)[] = [];
  const waits: number[] = [];
  let calls = 0;
  const fail: Interceptor = (next) => (request) => {
    idempotencyKeys.push(request.header.get("idempotency-key"));
    const failure = failures[calls++];
    return failure ? Promise.reject(failure) : next(request);
  };
  const retry = retryCalls(async (milliseconds, signal) => {
    waits.push(milliseconds);
    onWait();
    signal.throwIfAborted();
  });
  const handlers: Partial<ServiceImpl<typeof ApplicationService>> = {
    createApplication: () => ({ id: "created" }),
    getApplication: () => ({ id: "read" }),
  };
  const transport = createRouterTransport(({ service }) => service(ApplicationService, handlers), {
    transport: { interceptors: [retry, fail] },
  });
  return { ...createClientOn(transport), idempotencyKeys, waits };
}

describe("an idempotent call", () => {
  it.each<[why: string, failure: unknown]>([
    ["the service is unreachable", createError(Code.Unavailable)],
    ["the connection was cut, as HTTP/2 reports it", createError(Code.Canceled)],
    ["the connection was reset", createError(Code.Aborted)],
    ["fetch failed", new TypeError("fetch failed")],
    [
      "the store of the service is unreachable",
      createError(Code.Unavailable, "STORE_UNAVAILABLE", 100),
    ],
    ["calls are rate limited", createError(Code.ResourceExhausted, "RATE_LIMITED", 100)],
    ["the first attempt is still pending", createError(Code.Aborted, "IDEMPOTENCY_CONFLICT", 100)],
  ])("is retried with the same idempotency key if %s", async (_why, failure) => {
    const { applications, idempotencyKeys, waits } = createFailingClient([failure, failure]);
    expect((await applications.createApplication({})).id).toBe("created");
    expect(idempotencyKeys).toHaveLength(3);
    expect(new Set(idempotencyKeys).size).toBe(1);
    expect(idempotencyKeys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(waits).toHaveLength(2);
  });

  it("is sent at most three times", async () => {
    const failure = createError(Code.Unavailable);
    const { applications, idempotencyKeys } = createFailingClient(Array(10).fill(failure));
    await expect(applications.createApplication({})).rejects.toBe(failure);
    expect(idempotencyKeys).toHaveLength(3);
  });

  it.each<[why: string, failure: ConnectError]>([
    ["it is refused", createError(Code.PermissionDenied, "PERMISSION_DENIED")],
    ["it is not valid", createError(Code.InvalidArgument, "INVALID_REQUEST")],
    [
      "its idempotency key was used for another call",
      createError(Code.InvalidArgument, "IDEMPOTENCY_KEY_REUSED"),
    ],
    [
      "its idempotency key is in use by another key",
      createError(Code.Aborted, "IDEMPOTENCY_CONFLICT"),
    ],
    ["the service failed", createError(Code.Internal, "INTERNAL")],
    ["it took too long", createError(Code.DeadlineExceeded, "DEADLINE_EXCEEDED")],
    ["the service reports a canceled call", createError(Code.Canceled, "CANCELED")],
    ["Retry-After is too long", createError(Code.Unavailable, "STORE_UNAVAILABLE", 60_000)],
    ["the server does not support the protocol", createError(Code.Internal)],
  ])("is not retried if %s", async (_why, failure) => {
    const { applications, idempotencyKeys } = createFailingClient([failure]);
    await expect(applications.createApplication({})).rejects.toBe(failure);
    expect(idempotencyKeys).toHaveLength(1);
  });

  it("waits with backoff, and at least as long as Retry-After", async () => {
    const soon = createFailingClient(Array(2).fill(createError(Code.Unavailable)));
    await soon.applications.createApplication({});
    const [first = 0, second = 0] = soon.waits;
    expect(first).toBeGreaterThanOrEqual(100);
    expect(first).toBeLessThanOrEqual(200);
    expect(second).toBeGreaterThanOrEqual(200);
    expect(second).toBeLessThanOrEqual(400);

    const later = createFailingClient(
      Array(2).fill(createError(Code.Unavailable, "STORE_UNAVAILABLE", 1_000)),
    );
    await later.applications.createApplication({});
    expect(later.waits.every((wait) => wait > 1_000)).toBe(true);
  });

  it("keeps a given idempotency key", async () => {
    const { applications, idempotencyKeys } = createFailingClient([createError(Code.Unavailable)]);
    await applications.createApplication({}, { headers: { "Idempotency-Key": "mine" } });
    expect(idempotencyKeys).toEqual(["mine", "mine"]);
  });

  it("is not retried after it was aborted", async () => {
    const controller = new AbortController();
    const failures = [createError(Code.Unavailable)];
    const { applications, idempotencyKeys } = createFailingClient(failures, () =>
      controller.abort(),
    );
    const call = applications.createApplication({}, { signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: Code.Canceled });
    expect(idempotencyKeys).toHaveLength(1);
  });

  it("gets a new idempotency key for each call", async () => {
    const { applications, idempotencyKeys } = createFailingClient([]);
    await applications.createApplication({});
    await applications.createApplication({});
    expect(new Set(idempotencyKeys).size).toBe(2);
  });
});

describe("a read", () => {
  it("gets no idempotency key and is not retried", async () => {
    const failure = createError(Code.Unavailable);
    const { applications, idempotencyKeys } = createFailingClient([failure]);
    await expect(applications.getApplication({})).rejects.toBe(failure);
    expect(idempotencyKeys).toEqual([null]);
  });
});
