import { setTimeout as delay } from "node:timers/promises";
import { type Api, ApiFailure } from "../../support/api/api.js";
import { hangTimeout } from "../../support/until.js";

/** The result of a call. Times are by `performance.now()`. */
export interface Outcome<T = unknown> {
  readonly instance: string;
  readonly protocol: string;
  readonly operation: string;
  /** `done`, the reason of an error, `lost` if the connection broke before the response, or `hung`. */
  readonly result: string;
  readonly value?: T;
  readonly hasRetryHint: boolean;
  /** The version in the error `version_mismatch`. */
  readonly currentVersion?: string | undefined;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The error reasons of an instance that cannot reach its store. */
export const unavailable = ["store_unavailable", "deadline_exceeded"];

/** Timeout of a call in milliseconds, far longer than the timeouts of the service. */
const callTimeout = 90_000;

/** One instance over one protocol. */
export interface Endpoint {
  readonly instance: string;
  readonly protocol: string;
  readonly api: Api;
}

/** Makes calls and records their outcomes. */
export interface CallRecorder {
  readonly outcomes: readonly Outcome[];
  call<T>(
    endpoint: Endpoint,
    operation: string,
    send: (api: Api) => Promise<T>,
  ): Promise<Outcome<T>>;
}

export function createCallRecorder(): CallRecorder {
  const outcomes: Outcome[] = [];
  return {
    outcomes,
    async call({ instance, protocol, api }, operation, send) {
      const startedAt = performance.now();
      const settled = await Promise.race([settle(send(api)), hang()]);
      const outcome = {
        hasRetryHint: false,
        ...settled,
        instance,
        protocol,
        operation,
        startedAt,
        endedAt: performance.now(),
      };
      outcomes.push({ ...outcome, value: undefined });
      return outcome;
    },
  };
}

async function settle<T>(call: Promise<T>) {
  try {
    return { result: "done", value: await call };
  } catch (error) {
    if (!(error instanceof ApiFailure && error.reason !== "")) {
      return { result: "lost" };
    }
    const { reason: result, hasRetryHint, facts } = error;
    return { result, hasRetryHint, currentVersion: facts.currentVersion };
  }
}

async function hang() {
  await new Promise((resolve) => setTimeout(resolve, callTimeout).unref());
  return { result: "hung" };
}

/** Retries while the store is unavailable, as clients do. On a busy machine that happens without a fault. */
export async function retryWhileUnavailable<T>(call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + hangTimeout;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isUnavailable = error instanceof ApiFailure && unavailable.includes(error.reason);
      if (!isUnavailable || performance.now() > deadline) {
        throw error;
      }
    }
    await delay(100);
  }
}
