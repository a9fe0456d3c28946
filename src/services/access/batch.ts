import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type { AuthorizedCall } from "../../auth/caller.js";
import { Problem } from "../../errors.js";
import { yieldToEventLoop } from "../../lib/event-loop.js";
import { validateMessage } from "../../validation/validate.js";
import { type RateLimits, throwIfRefused } from "../rate-limits/rate-limits.js";
import type { CheckResult, Checks } from "./check.js";

/** Checks per tick of the event loop, so that a large batch does not delay other calls. */
const checksPerTick = 200;

/** Invalid checks per tick. Describing an invalid one takes far longer than accepting a valid one. */
const invalidChecksPerTick = 30;

interface BatchOptions {
  readonly checks: Pick<Checks, "evaluateMany">;
  readonly rateLimits: Pick<RateLimits, "createCheckCounter">;
}

/** Maps an item to its check, or to the problem of the item. */
type ToCheck<T> = (item: T) => CheckAccessRequest | Problem;

/**
 * Makes a check for each item and returns the results in order. With `isLast`, makes
 * one after the other, and none after the first result for which it is true. The
 * result of an invalid check is its problem. Each item counts towards the rate limit
 * of the caller. If the limit allows fewer, throws.
 */
type RunBatch = <T>(
  call: AuthorizedCall,
  items: readonly T[],
  toCheck: ToCheck<T>,
  isLast?: (result: CheckResult) => boolean,
) => Promise<CheckResult[]>;

export function createRunBatch({ checks, rateLimits }: BatchOptions): RunBatch {
  return async ({ caller, call }, items, toCheck, isLast) => {
    throwIfRefused(await rateLimits.createCheckCounter(caller, call.peer)(items.length));
    const results: CheckResult[] = [];
    while (results.length < items.length) {
      const part = items.slice(results.length, results.length + checksPerTick);
      if (results.length > 0) {
        await yieldToEventLoop();
      }
      const valid = await toValidChecks(part, toCheck);
      for (const step of isLast ? valid.map((check) => [check]) : [valid]) {
        const found = await checks.evaluateMany(caller, step);
        results.push(...found);
        if (isLast && found.some(isLast)) {
          return results;
        }
      }
    }
    return results;
  };
}

/** Maps items to checks. An invalid one is replaced by its problem. */
async function toValidChecks<T>(
  items: readonly T[],
  toCheck: ToCheck<T>,
): Promise<(CheckAccessRequest | Problem)[]> {
  const valid: (CheckAccessRequest | Problem)[] = [];
  let invalidCount = 0;
  for (const item of items) {
    const check = toCheck(item);
    const problem =
      check instanceof Problem ? check : validateMessage(CheckAccessRequestSchema, check);
    valid.push(problem ?? check);
    if (problem && ++invalidCount % invalidChecksPerTick === 0) {
      await yieldToEventLoop();
    }
  }
  return valid;
}
