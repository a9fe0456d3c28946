import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { CommanderError } from "commander";
import { exitCodes, reportFailure } from "../../src/cli/errors.js";
import { createWholeProgram } from "./whole-program.js";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command as the command line does, but in this process: to start one
 * takes half a second. Commands share the process, and run one after the other.
 */
export function runHere(args: readonly string[], environment: Environment): Promise<Ended> {
  const next = last.then(() => runAlone(args, environment));
  last = next.catch(() => {});
  return next;
}

async function runAlone(args: readonly string[], environment: Environment): Promise<Ended> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const restore = replaceParts({
    ...{ stdout, stderr, stdin: Readable.from([]) },
    ...{ env: { PATH: process.env.PATH, ...environment }, exitCode: undefined },
  });
  try {
    await createWholeProgram().parseAsync(args, { from: "user" }).catch(report);
    const code = Number(process.exitCode ?? exitCodes.done.code);
    stdout.end();
    stderr.end();
    return { code, stdout: await text(stdout), stderr: await text(stderr) };
  } finally {
    restore();
  }
}

/** As command-line.ts does. */
function report(error: Error): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.done.code : exitCodes.usage.code;
  } else {
    reportFailure(error);
  }
}

/** Gives `process` other parts, and returns what brings back its own. */
function replaceParts(parts: Readonly<Record<string, unknown>>): () => void {
  const own = Object.keys(parts).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries(parts)) {
    Object.defineProperty(process, name, { value, writable: true, configurable: true });
  }
  return () => {
    for (const [name, descriptor] of own) {
      if (descriptor) {
        Object.defineProperty(process, name, descriptor);
      } else {
        Reflect.deleteProperty(process, name);
      }
    }
  };
}
