import pino, { type Logger } from "pino";
import type { Call } from "../caller.js";

/** Writes the line about a call: who, what, how it ended and how long it took. */
export type WriteCallLine = (call: Call, method: string, code: string, started: number) => void;

/** What `pino` keeps under symbols: where its lines go, and what it writes of the time. */
interface Inside {
  readonly [pino.symbols.streamSym]: { write(line: string): void };
  readonly [pino.symbols.timeSym]: () => string;
}

/**
 * There is one such line for each call, so it is put together here: that takes
 * a fraction of the time that a log for all purposes does. All that is in it
 * is made of letters, digits and a few signs, none of which JSON would escape.
 */
export function createCallLine(log: Logger): WriteCallLine {
  const { [pino.symbols.streamSym]: lines, [pino.symbols.timeSym]: time } = log as never as Inside;
  const start = `{"level":${log.levels.values.info}`;

  return ({ requestId, caller }, method, code, started) => {
    if (!log.isLevelEnabled("info")) {
      return;
    }
    const application = caller ? `,"application_id":"${caller.application.id}"` : "";
    const session = caller?.session ? `,"session_id":"${caller.session.id}"` : "";
    lines.write(
      `${start}${time()},"request_id":"${requestId}","method":"${method}","code":"${code}",` +
        `"duration_ms":${millisecondsSince(started)}${application}${session}}\n`,
    );
  };
}

/** To the microsecond. */
export function millisecondsSince(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000;
}
