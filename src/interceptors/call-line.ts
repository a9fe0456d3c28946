import { Code } from "@connectrpc/connect";
import pino, { type Logger } from "pino";
import type { Call } from "../caller.js";
import type { Problem } from "../errors.js";

/** A call that has ended, as its line tells it. */
export interface EndedCall {
  readonly call: Call;
  readonly method: string;
  /** `ok`, or the word of its problem. */
  readonly code: string;
  readonly milliseconds: number;
  /** The trace that it is a part of. */
  readonly traceId: string | undefined;
  readonly problem: Problem | undefined;
}

/** Writes the line about a call. */
export type WriteCallLine = (ended: EndedCall) => void;

/** What `pino` keeps under symbols: where its lines go, and what it writes of the time. */
interface Inside {
  readonly [pino.symbols.streamSym]: { write(line: string): void };
  readonly [pino.symbols.timeSym]: () => string;
}

/**
 * There is one such line for each call, so it is put together here: that takes
 * a fraction of the time that a log for all purposes does. What went wrong
 * with us, which is rare, is for such a log: it can hold anything.
 */
export function createCallLine(log: Logger): WriteCallLine {
  const { [pino.symbols.streamSym]: lines, [pino.symbols.timeSym]: time } = log as never as Inside;
  const start = `{"level":${log.levels.values.info}`;

  return (ended) => {
    const { problem } = ended;
    if (problem && isOurs(problem)) {
      const level = problem.code === Code.Internal ? "error" : "warn";
      // Read back, so that the fields are listed once.
      log[level]({ ...JSON.parse(`{${fieldsOf(ended)}}`), err: problem.cause });
    } else if (log.isLevelEnabled("info")) {
      lines.write(`${start}${time()},${fieldsOf(ended)}}\n`);
    }
  };
}

/**
 * Who called, what, how it ended and how long it took, in JSON. All of it is
 * made of letters, digits and a few signs, none of which JSON would escape.
 */
function fieldsOf({ call, method, code, milliseconds, traceId }: EndedCall): string {
  const { requestId, caller, protocol } = call;
  const application = caller ? `,"application_id":"${caller.application.id}"` : "";
  const session = caller?.session ? `,"session_id":"${caller.session.id}"` : "";
  const trace = traceId === undefined ? "" : `,"trace_id":"${traceId}"`;
  return (
    `"request_id":"${requestId}","method":"${method}","protocol":"${protocol}",` +
    `"code":"${code}","duration_ms":${toMicrosecond(milliseconds)}${application}${session}${trace}`
  );
}

/** Whether a problem is none of the caller's doing. */
function isOurs({ code }: Problem): boolean {
  return code === Code.Internal || code === Code.Unavailable;
}

/** So many milliseconds, to the microsecond. */
export function toMicrosecond(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
