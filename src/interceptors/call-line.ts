import { Code } from "@connectrpc/connect";
import pino, { type Logger } from "pino";
import type { Call, ProtocolName } from "../caller.js";
import type { Problem } from "../errors.js";
import { oncePer } from "../once-per.js";

/** A call that has ended, as its line tells it. */
export interface EndedCall {
  readonly call: Call;
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
export function createCallLines(log: Logger): (method: string) => WriteCallLine {
  const { [pino.symbols.streamSym]: lines, [pino.symbols.timeSym]: time } = log as never as Inside;
  const start = `{"level":${log.levels.values.info}`;

  return (method) => {
    const fieldsOf = createFields(method);
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
  };
}

/**
 * Who called, what, how it ended and how long it took, in JSON. All of it is
 * made of letters, digits and a few signs, none of which JSON would escape.
 */
function createFields(method: string): (ended: EndedCall) => string {
  // Of most lines this part is the same, and each piece that a text is put together from costs.
  const outcomeOf = (protocol: ProtocolName, code: string) =>
    `","method":"${method}","protocol":"${protocol}","code":"${code}","duration_ms":`;
  const success = oncePer((protocol: ProtocolName) => outcomeOf(protocol, "ok"));

  return ({ call, code, milliseconds, traceId }) => {
    const { requestId, caller, protocol } = call;
    const outcome = code === "ok" ? success(protocol) : outcomeOf(protocol, code);
    const application = caller ? `,"application_id":"${caller.application.id}"` : "";
    const session = caller?.session ? `,"session_id":"${caller.session.id}"` : "";
    const trace = traceId === undefined ? "" : `,"trace_id":"${traceId}"`;
    return `"request_id":"${requestId}${outcome}${toText(milliseconds)}${application}${session}${trace}`;
  };
}

/** Whether a problem is none of the caller's doing. */
function isOurs({ code }: Problem): boolean {
  return code === Code.Internal || code === Code.Unavailable;
}

/** The thousandths of a number, as they are written. */
const thousandths = Array.from({ length: 1_000 }, (_, count) => `.${`${count}`.padStart(3, "0")}`);

/** So many milliseconds, to the microsecond: written out of whole numbers, as a broken one takes three times as long. */
function toText(milliseconds: number): string {
  const microseconds = Math.round(milliseconds * 1_000);
  return `${Math.floor(microseconds / 1_000)}${thousandths[microseconds % 1_000]}`;
}
