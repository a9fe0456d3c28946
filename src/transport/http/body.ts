import { invalidRequest, Problem } from "../../errors.js";
import type { Connection } from "../listener/connection.js";

/**
 * A body, or a message of a stream, may have this many chunks of any size. Further
 * chunks must have this average size: a chunk costs the time and memory of 100 bytes.
 */
const maxSmallChunks = 2_048;
const minAverageSize = 256;

/** Whether so many bytes arrived in too many small chunks. */
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

/** Parsing this many bytes takes as long as a call without a body. */
const bytesPerCall = 4 * 1024;

/**
 * Continues a call whose body is complete, now or in a later tick. Many bodies
 * may end at the same moment, and parsing them takes time and memory.
 */
export function scheduleBody(
  { bodyScheduler, flow }: Pick<Connection, "bodyScheduler" | "flow">,
  size: number,
  run: () => void,
): void {
  const weight = 1 + Math.floor(size / bytesPerCall);
  if (bodyScheduler.canRunNow(weight)) {
    run();
  } else {
    bodyScheduler.enqueue(flow.trackQueuedCall(run), weight);
  }
}
