import { invalidRequest, type Problem } from "../errors.js";

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
