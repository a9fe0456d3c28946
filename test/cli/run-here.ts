import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { CommanderError } from "commander";
import { exitCodes, reportError } from "../../src/cli/errors.js";
import { createWholeProgram } from "./whole-program.js";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command in this process, because a new process takes half a second.
 * Commands run one after the other: they share `process`.
 */
export function runHere(args: readonly string[], environment: Environment): Promise<Ended> {
  const next = last.then(() => runAlone(args, environment));
  last = next.catch(() => {});
  return next;
}

async function runAlone(args: readonly string[], environment: Environment): Promise<Ended> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const restore = replaceProperties({
    ...{ stdout, stderr, stdin: Readable.from([]) },
    ...{ env: { PATH: process.env.PATH, ...environment }, exitCode: undefined },
  });
  try {
    await createWholeProgram().parseAsync(args, { from: "user" }).catch(report);
    const code = Number(process.exitCode ?? exitCodes.success.code);
    stdout.end();
    stderr.end();
    return { code, stdout: await text(stdout), stderr: await text(stderr) };
  } finally {
    restore();
  }
}

/** The same as src/cli/main.ts. */
function report(error: Error): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.success.code : exitCodes.usage.code;
  } else {
    reportError(error);
  }
}

/** Replaces properties of `process`, and returns a function that restores them. */
function replaceProperties(properties: Readonly<Record<string, unknown>>): () => void {
  const own = Object.keys(properties).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries(properties)) {
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
