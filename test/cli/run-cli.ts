import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll } from "@jest/globals";
import type { Command } from "commander";
import { addClientCommands } from "../../src/cli/commands.js";
import { exitCodes, reportError } from "../../src/cli/errors.js";
import { createProgram } from "../../src/cli/program.js";
import { runLatchkey } from "../support/service/run-latchkey.js";

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

export interface RunOptions {
  readonly environment?: Environment;
  /** The content of stdin. */
  readonly input?: string;
  /** The working directory. */
  readonly cwd?: string;
}

/** Runs commands with a temporary configuration folder. */
export function useCli() {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-cli-"));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  return {
    /** The path of a file in that folder. */
    path: (name: string) => join(folder, name),

    environment: (more: Environment = {}) => ({ XDG_CONFIG_HOME: folder, ...more }),

    async run(
      args: readonly string[],
      { environment, input = "", cwd }: RunOptions = {},
    ): Promise<CommandResult> {
      const { child, ended, output } = runLatchkey(args, this.environment(environment), {
        cwd,
      });
      // The command may exit before it has read everything.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input);
      return { code: await ended(), ...output };
    },

    /** Runs a command in this process, which is faster, but without stdin. */
    runInProcess(args: readonly string[], environment: Environment = {}): Promise<CommandResult> {
      return queueInProcess(args, this.environment(environment));
    },
  };
}

/** The program with all of its commands. */
export function createFullProgram(): Command {
  const program = createProgram();
  addClientCommands(program);
  return program;
}

let last: Promise<unknown> = Promise.resolve();

/** Runs commands one after the other, because they share `process`. */
function queueInProcess(args: readonly string[], environment: Environment): Promise<CommandResult> {
  const next = last.then(() => runInProcess(args, environment));
  last = next.catch(() => {});
  return next;
}

async function runInProcess(
  args: readonly string[],
  environment: Environment,
): Promise<CommandResult> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const restore = replaceProperties({
    stdout,
    stderr,
    stdin: Readable.from([]),
    env: { PATH: process.env.PATH, ...environment },
  });
  const { exitCode } = process;
  process.exitCode = undefined;
  try {
    await createFullProgram().parseAsync(args, { from: "user" }).catch(reportError);
    const code = Number(process.exitCode ?? exitCodes.success.code);
    stdout.end();
    stderr.end();
    return { code, stdout: await text(stdout), stderr: await text(stderr) };
  } finally {
    process.exitCode = exitCode;
    restore();
  }
}

/** Replaces properties of `process`, and returns a function that restores them. */
function replaceProperties(properties: Readonly<Record<string, unknown>>): () => void {
  const originals = Object.keys(properties).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries(properties)) {
    Object.defineProperty(process, name, { value, writable: true, configurable: true });
  }
  return () => {
    for (const [name, descriptor] of originals) {
      if (descriptor) {
        Object.defineProperty(process, name, descriptor);
      } else {
        Reflect.deleteProperty(process, name);
      }
    }
  };
}
