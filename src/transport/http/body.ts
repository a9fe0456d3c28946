import { invalidRequest, type Problem } from "../../errors.js";
import type { Connection } from "../listener/connection.js";

/**
 * How many parts a body, or a message of a stream, may have, whatever its size, and beside these
 * how large they are to be on average. To read a part takes the time and memory of a hundred bytes.
 */
const mostParts = 2_048;
const smallPart = 256;

/** Whether so many bytes came in parts that are too many and too small. */
export function areTooManyParts(count: number, size: number): boolean {
  return count > mostParts + size / smallPart;
}

export function inTooManyParts(): Problem {
  const message = "comes in too many small parts: send larger ones";
  return invalidRequest({ field: "request", message });
}

/** So many bytes take as long to read as a call without any. */
const bytesPerCall = 4 * 1024;

/**
 * Serves a call whose body of so many bytes has come to its end, at once or in
 * a later turn. What takes long begins then: many bodies may end in one moment,
 * and what is made of them is larger than they are.
 */
export function takeBodyTurn(
  { bodyTurns, flow }: Pick<Connection, "bodyTurns" | "flow">,
  size: number,
  serve: () => void,
): void {
  const weight = 1 + Math.floor(size / bytesPerCall);
  if (bodyTurns.isFree(weight)) {
    serve();
  } else {
    bodyTurns.wait(flow.count(serve), weight);
  }
}
