import pino, { type Logger } from "pino";
import { createLineWriter, type LineWriter } from "./line-writer.js";

export interface Log {
  readonly log: Logger;
  /** Where its lines go, for lines that others have made. */
  readonly lines: LineWriter;
}

/** The log of this process, on stdout, a line of JSON for each entry. */
export function createLog(level: string): Log {
  const lines = createLineWriter();
  return { log: pino({ level, base: null, timestamp: createTimestamp() }, lines), lines };
}

/** The time in a line. Many lines are of the same millisecond, and it is costly to write out. */
function createTimestamp(): () => string {
  let last = Number.NaN;
  let text = "";
  return () => {
    const now = Date.now();
    if (now !== last) {
      last = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}
