import type { Connection } from "./connection.js";

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
