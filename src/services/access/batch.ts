import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type { AuthorizedCall } from "../../call.js";
import { Problem } from "../../errors.js";
import { createKeyedSemaphore } from "../../lib/concurrency.js";
import { createPace, type Pace, yieldToEventLoop } from "../../lib/event-loop.js";
import { type RateLimits, throwIfRefused } from "../../limits/rate-limits.js";
import { validateMessage } from "../../validation/validate.js";
import type { CheckResult, Checks } from "./check.js";

/** Checks whose principals are read together, which bounds the memory of a batch. */
const checksPerPart = 50;

/** Larger parts wait for others of their tenant, because their principals may be large. */
const checksOfSmallPart = 20;
const concurrentParts = 2;

interface BatchOptions {
  readonly checks: Pick<Checks, "openBatch">;
  readonly rateLimits: Pick<RateLimits, "createCheckCounter">;
}

/** Maps an item to its check, or to the problem of the item. */
type ToCheck<T> = (item: T) => CheckAccessRequest | Problem;

/**
 * Makes a check for each item and returns the results in order. With `isLast`, makes
 * one after the other, and none after the first result for which it is true. The
 * result of an invalid check is its problem. Each item counts towards the rate limit
 * of the caller; if the limit allows fewer, throws. `field` is the field of the request
 * that determines the number of checks; errors name it. A canceled call stops.
 */
export type RunBatch = <T>(
  call: AuthorizedCall,
  field: string,
  items: readonly T[],
  toCheck: ToCheck<T>,
  isLast?: (result: CheckResult) => boolean,
) => Promise<CheckResult[]>;

export function createRunBatch({ checks, rateLimits }: BatchOptions): RunBatch {
  const withPartLimit = createKeyedSemaphore(concurrentParts);

  return async ({ caller, call }, field, items, toCheck, isLast) => {
    const countChecks = rateLimits.createCheckCounter(caller, call.peer);
    throwIfRefused(await countChecks(items.length, field));
    function throwIfCanceled(): void {
      if (call.cancellation.reason) {
        throw call.cancellation.reason;
      }
    }
    const { tenantId } = caller.application;
    const pace = createPace(tenantId, throwIfCanceled);
    const evaluatePart = checks.openBatch(caller, pace);

    async function evaluate(part: readonly (CheckAccessRequest | Problem)[]) {
      if (part.length <= checksOfSmallPart) {
        return evaluatePart(part);
      }
      return withPartLimit(tenantId, () => {
        throwIfCanceled();
        return evaluatePart(part);
      });
    }

    const results: CheckResult[] = [];
    while (results.length < items.length) {
      const part = items.slice(results.length, results.length + checksPerPart);
      if (results.length > 0) {
        await yieldToEventLoop(tenantId);
      }
      const valid = await toValidChecks(part, toCheck, pace);
      for (const step of isLast ? valid.map((check) => [check]) : [valid]) {
        const found = await evaluate(step);
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
  pace: Pace,
): Promise<(CheckAccessRequest | Problem)[]> {
  const valid: (CheckAccessRequest | Problem)[] = [];
  for (const item of items) {
    const pause = pace();
    if (pause) {
      await pause;
    }
    const check = toCheck(item);
    const problem =
      check instanceof Problem ? check : validateMessage(CheckAccessRequestSchema, check);
    valid.push(problem ?? check);
  }
  return valid;
}
