import { writeSync } from "node:fs";
import type { Logger } from "pino";
import pino from "pino";

interface Log {
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

/** Writes lines to stdout, off the way of those who have them written. */
export interface LineWriter {
  /** Takes one or more whole lines. */
  write(lines: string): void;
  /** Writes at once what was gathered. */
  flush(): void;
}

/** How many characters are gathered before they are written, and how long, in milliseconds. */
const mostGathered = 32 * 1024;
const longestWait = 200;

/** How many bytes may wait for a reader that has stopped to read. More is dropped: memory is needed for calls. */
const mostWaiting = 16 * 1024 * 1024;

/** To write each line by itself would cost more than the call that it tells of. What is left is written at exit. */
function createLineWriter(): LineWriter {
  const destination = pino.destination({ sync: false, maxLength: mostWaiting });
  let gathered: string[] = [];
  let size = 0;
  let isFlushDue = false;

  function flush(): void {
    if (size > 0) {
      const text = gathered.join("");
      gathered = [];
      size = 0;
      destination.write(text);
    }
  }

  // What is begun now would not be finished: all that is left is written at once.
  process.once("exit", () => {
    try {
      destination.flushSync();
      writeSync(process.stdout.fd, gathered.join(""));
    } catch {
      // There is no reader any more.
    }
  });

  return {
    write(lines) {
      gathered.push(lines);
      size += lines.length;
      if (size >= mostGathered) {
        flush();
      } else if (!isFlushDue) {
        isFlushDue = true;
        setTimeout(() => {
          isFlushDue = false;
          flush();
        }, longestWait).unref();
      }
    },

    flush,
  };
}
