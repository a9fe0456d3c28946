import { type Api, ApiFailure } from "../../support/api/api.js";

/** How a call ended, and when. */
export interface Outcome<T = unknown> {
  readonly instance: string;
  readonly protocol: string;
  readonly what: string;
  /** `done`, the word of a refusal, `lost` where the connection broke before the answer, or `hung`. */
  readonly end: string;
  readonly value?: T;
  readonly hasRetryHint: boolean;
  /** As `performance.now()` tells time. */
  readonly begunAt: number;
  readonly endedAt: number;
}

/** The words of an instance that cannot tell now. */
export const unavailable = ["store_unavailable", "deadline_exceeded"];

/** A call that takes so long hangs, in milliseconds: far longer than the service's own timeouts. */
const patience = 90_000;

/** One instance as a caller sees it, over one protocol. */
export interface Door {
  readonly instance: string;
  readonly protocol: string;
  readonly api: Api;
}

/** Makes calls, and keeps how each of them ended. */
export interface Tally {
  readonly outcomes: readonly Outcome[];
  call<T>(door: Door, what: string, make: (api: Api) => Promise<T>): Promise<Outcome<T>>;
}

export function createTally(): Tally {
  const outcomes: Outcome[] = [];
  return {
    outcomes,
    async call({ instance, protocol, api }, what, make) {
      const begunAt = performance.now();
      const ended = await Promise.race([settle(make(api)), hang()]);
      const outcome = { hasRetryHint: false, ...ended, instance, protocol, what, begunAt };
      const stamped = { ...outcome, endedAt: performance.now() };
      outcomes.push({ ...stamped, value: undefined });
      return stamped;
    },
  };
}

async function settle<T>(call: Promise<T>) {
  try {
    return { end: "done", value: await call };
  } catch (error) {
    return error instanceof ApiFailure && error.reason !== ""
      ? { end: error.reason, hasRetryHint: error.hasRetryHint }
      : { end: "lost" };
  }
}

async function hang() {
  await new Promise((resolve) => setTimeout(resolve, patience).unref());
  return { end: "hung" };
}
