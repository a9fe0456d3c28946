import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { retryCalls } from "../../src/contract/client-interceptors.js";
import { retryRateLimited } from "../../web/console/sign-in/retry-rate-limited.js";
import type { WaitOutcome } from "../../web/console/ui/waiting-calls.js";

function rateLimited(retryAfter?: number): ConnectError {
  const error = new ConnectError("Too many calls.", Code.ResourceExhausted);
  if (retryAfter !== undefined) {
    const retryDelay = durationFromMs(retryAfter);
    error.details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) });
  }
  return error;
}

/** A client of a service that fails with the given errors, then succeeds. The waits end with the given outcomes. */
function createFailingClient(
  failures: readonly ConnectError[],
  outcomes: readonly WaitOutcome[] = [],
) {
  const waits: number[] = [];
  const idempotencyKeys: (string | null)[] = [];
  const retry = retryRateLimited(async (delay) => outcomes[waits.push(delay) - 1] ?? "due");
  const fail: Interceptor = (next) => (request) => {
    const failure = failures[idempotencyKeys.push(request.header.get("idempotency-key")) - 1];
    return failure ? Promise.reject(failure) : next(request);
  };
  const transport = createRouterTransport(
    ({ service }) =>
      service(ApplicationService, {
        getApplication: () => ({ id: "read" }),
        createApplication: () => ({ id: "created" }),
        deleteApplication: () => ({}),
      }),
    { transport: { interceptors: [retry, retryCalls(undefined, 0), fail] } },
  );
  return { ...createClient(ApplicationService, transport), waits, idempotencyKeys };
}

const many = Array.from({ length: 10 }, () => rateLimited(2_000));

describe("a call that is refused with 429", () => {
  it("is repeated after the delay that the service requests", async () => {
    const { getApplication, waits } = createFailingClient([rateLimited(2_000), rateLimited(7_000)]);
    expect((await getApplication({ id: "a" })).id).toBe("read");
    expect(waits).toEqual([2_000, 7_000]);
  });

  it("carries the same Idempotency-Key when it changes something", async () => {
    const { createApplication, idempotencyKeys } = createFailingClient(many.slice(0, 2));
    expect((await createApplication({})).id).toBe("created");
    expect(idempotencyKeys).toHaveLength(3);
    expect(new Set(idempotencyKeys).size).toBe(1);
    expect(idempotencyKeys[0]).toMatch(/^[0-9a-f]{32}$/);
  });

  it("fails with its error after three repetitions", async () => {
    const { deleteApplication, waits } = createFailingClient(many);
    await expect(deleteApplication({ id: "a" })).rejects.toThrow("Too many calls.");
    expect(waits).toHaveLength(3);
  });

  it("fails at once if the user cancels it", async () => {
    const { getApplication, idempotencyKeys } = createFailingClient(many, ["due", "canceled"]);
    await expect(getApplication({ id: "a" })).rejects.toThrow("Too many calls.");
    expect(idempotencyKeys).toHaveLength(2);
  });

  it.each([
    ["requests no delay", rateLimited()],
    ["requests a delay of minutes", rateLimited(600_000)],
    ["is unavailable", new ConnectError("Down.", Code.Unavailable)],
    ["refuses it for another reason", new ConnectError("No.", Code.PermissionDenied)],
  ])("is not repeated if the service %s", async (_why, failure) => {
    const { getApplication, waits } = createFailingClient([failure]);
    await expect(getApplication({ id: "a" })).rejects.toThrow(failure.rawMessage);
    expect(waits).toEqual([]);
  });

  it("is repeated as often as the user wants, but by itself at most three times", async () => {
    const outcome = fc.constantFrom<WaitOutcome>("due", "repeated", "canceled");
    const property = fc.asyncProperty(
      fc.array(outcome, { maxLength: 10 }),
      fc.nat(10),
      async (outcomes, count) => {
        const { getApplication, waits } = createFailingClient(many.slice(0, count), outcomes);
        const succeeded = await getApplication({ id: "a" }).then(
          () => true,
          () => false,
        );
        const ended = waits.map((_, index) => outcomes[index] ?? "due");
        const due = ended.filter((one) => one === "due").length;
        expect(due).toBeLessThanOrEqual(3);
        expect(ended.slice(0, -1)).not.toContain("canceled");
        expect(succeeded).toBe(waits.length === count && ended.at(-1) !== "canceled");
        expect(succeeded || ended.at(-1) === "canceled" || due === 3).toBe(true);
      },
    );
    await fc.assert(property);
  });
});
