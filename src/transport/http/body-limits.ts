import { invalidRequest, Problem } from "../../errors.js";
import type { CallScheduler } from "../listener/call-scheduler.js";
import type { FlowControl } from "../listener/flow-control.js";

/**
 * A body, or a message of a stream, may have this many chunks of any size. Further
 * chunks must have this average size: a chunk costs the time and memory of 100 bytes.
 */
const maxSmallChunks = 2_048;
const minAverageSize = 256;

/** Whether `count` chunks are too many for `size` bytes. */
export function hasTooManyChunks(count: number, size: number): boolean {
  return count > maxSmallChunks + size / minAverageSize;
}

export function tooManyChunks(): Problem {
  const message = "arrives in too many small chunks; send larger ones";
  return invalidRequest({ field: "request", message });
}

/** The request ended before its body was complete. */
export function requestAborted(): Problem {
  return new Problem("canceled", "The request ended before its body was complete.");
}

/** Limits the memory that all request bodies take together. */
export interface BodyBudget {
  /** Changes the reservation of one body. Returns whether the budget allows it; it may always shrink. */
  update(before: number, now: number): boolean;
}

/** Bodies up to this size are not counted: most are that small, and even many take little memory. */
const uncountedBytes = 16 * 1024;

/** Creates a budget of `limit` bytes. The size limit of single bodies does not bound many unfinished ones. */
export function createBodyBudget(limit: number): BodyBudget {
  let reserved = 0;
  return {
    update(before, now) {
      const change = countedBytes(now) - countedBytes(before);
      const others = reserved - countedBytes(before);
      // The only body in memory is limited by the body limit alone.
      if (change > 0 && others > 0 && reserved + change > limit) {
        return false;
      }
      reserved += change;
      return true;
    },
  };
}

function countedBytes(bytes: number): number {
  return bytes > uncountedBytes ? bytes : 0;
}

/** Parsing this many bytes takes as long as a call without a body. */
const bytesPerCall = 4 * 1024;

/**
 * Continues a call whose body is complete, now or in a later tick. Many bodies
 * may be complete at the same time, and parsing them takes time and memory.
 */
export function scheduleBody(
  { bodyScheduler, flow }: { readonly bodyScheduler: CallScheduler; readonly flow: FlowControl },
  size: number,
  run: () => void,
): void {
  const weight = 1 + Math.floor(size / bytesPerCall);
  if (bodyScheduler.tryAcquire(weight)) {
    run();
  } else {
    bodyScheduler.enqueue(flow.trackQueuedCall(run), weight);
  }
}
