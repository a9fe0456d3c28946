import { writeSync } from "node:fs";
import type { DestinationStream, Logger } from "pino";
import pino from "pino";
import { createColors } from "../lib/terminal.js";
import { formatLogLine } from "./log-format.js";

/** A logger that also takes lines whose fields are already JSON, which costs a fraction of pino's time. */
export interface ServiceLogger extends Logger {
  /** Logs fields, such as `"code":"ok","status":200`, at level info. Check that the level is enabled first. */
  infoJson(fields: string): void;
}

interface Log {
  readonly log: ServiceLogger;
  /** Takes lines that are already formatted. */
  readonly lines: LineWriter;
}

/** Creates the log of this process on stdout: JSON lines, or text for people if stdout is a terminal. */
export function createLog(level: string): Log {
  const lines = process.stdout.isTTY ? createTerminalWriter() : createLineWriter();
  return { log: createLogger(level, lines), lines };
}

/** Creates a logger that writes JSON lines with level names. */
export function createLogger(level: string, destination: DestinationStream): ServiceLogger {
  const formatters = { level: (level: string) => ({ level }) };
  const timestamp = createTimestamp();
  const logger = pino({ level, base: null, timestamp, formatters }, destination);

  function infoJson(fields: string): void {
    destination.write(`{"level":"info"${timestamp()},${fields}}\n`);
  }
  return Object.assign(logger, { infoJson });
}

/** Caches the formatted time, because many lines have the same millisecond. */
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

/** Writes lines to stdout asynchronously. */
export interface LineWriter {
  /** Takes one or more complete lines. */
  write(lines: string): void;
  /** Writes buffered lines now. */
  flush(): void;
}

/** Writes each line immediately. Workers write JSON to a pipe, so their lines are formatted here. */
function createTerminalWriter(): LineWriter {
  const { stdout } = process;
  const colors = createColors(stdout.hasColors());
  return {
    write(lines) {
      stdout.write(lines.replaceAll(/^\{.*\}$/gm, (line) => formatLogLine(line, colors)));
    },
    flush() {},
  };
}

/** Characters to buffer before a write, and the maximum delay in milliseconds. */
const maxBuffered = 32 * 1024;
const flushInterval = 200;

/** Bytes that may wait for a stalled reader of stdout. Further lines are dropped to bound memory. */
const maxPending = 16 * 1024 * 1024;

/** Buffers lines, because one write per line would cost more than the call it logs. Flushes at exit. */
function createLineWriter(): LineWriter {
  const destination = pino.destination({ sync: false, maxLength: maxPending });
  let buffered: string[] = [];
  let size = 0;
  let isFlushDue = false;

  function flush(): void {
    if (size > 0) {
      const text = buffered.join("");
      buffered = [];
      size = 0;
      destination.write(text);
    }
  }

  // Asynchronous writes would not finish at exit.
  process.once("exit", () => {
    try {
      destination.flushSync();
      writeSync(process.stdout.fd, buffered.join(""));
    } catch {
      // The reader of stdout has closed it.
    }
  });

  return {
    write(lines) {
      buffered.push(lines);
      size += lines.length;
      if (size >= maxBuffered) {
        flush();
      } else if (!isFlushDue) {
        isFlushDue = true;
        setTimeout(() => {
          isFlushDue = false;
          flush();
        }, flushInterval).unref();
      }
    },

    flush,
  };
}
