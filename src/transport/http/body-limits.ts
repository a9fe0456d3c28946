import { invalidRequest, Problem } from "../../errors.js";
import { yieldToEventLoop } from "../../lib/event-loop.js";

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

/** Most bodies are at most this large. Even many of them take little memory and time. */
const smallBodyBytes = 16 * 1024;

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
  return bytes > smallBodyBytes ? bytes : 0;
}

/**
 * Waits before a large body is parsed, which takes milliseconds. One waits per tick of the event loop at most, so
 * that other calls run between many bodies that are complete at the same time.
 */
export function waitToParse(size: number): Promise<void> | undefined {
  return size > smallBodyBytes ? yieldToEventLoop() : undefined;
}
