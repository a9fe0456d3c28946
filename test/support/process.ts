import {
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  type SpawnOptions,
  spawn,
} from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the command `latchkey` runs, built before the first test. */
export const latchkeyPath = "dist/src/main.js";

/** A process whose output is read as it comes. */
export interface FollowedProcess {
  readonly child: ChildProcess;
  /** All that it wrote so far. */
  readonly output: { stdout: string; stderr: string };
  /** Resolves when its output matches, and fails when it ends before that. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code when it has ended. */
  ended(): Promise<number | null>;
}

/** The command `latchkey` in a process of its own. */
export type LatchkeyProcess = FollowedProcess;

export type RunOptions = Pick<SpawnOptions, "detached" | "uid" | "gid">;

export function runLatchkey(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  options: RunOptions = {},
): LatchkeyProcess {
  const { PATH = "" } = process.env;
  // It serves by itself, and leaves the other cores to other tests, where nothing else is said.
  const child = spawn(process.execPath, [latchkeyPath, ...args], {
    env: { PATH, HOST: "127.0.0.1", WORKERS: "1", ...environment },
    stdio: "pipe",
    ...options,
  });
  return followProcess(child);
}

export function followProcess(child: ChildProcessWithoutNullStreams): FollowedProcess {
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (text) => {
    output.stdout += text;
  });
  child.stderr.on("data", (text) => {
    output.stderr += text;
  });
  let hasEnded = false;
  const closed = once(child, "close").then(() => {
    hasEnded = true;
  });
  return {
    child,
    output,
    async until(pattern) {
      for (;;) {
        const match = pattern.exec(output.stdout);
        if (match) {
          return match;
        }
        if (hasEnded) {
          const how = child.exitCode ?? child.signalCode;
          throw new Error(`it ended with ${how}: ${output.stderr}`);
        }
        await Promise.race([once(child.stdout, "data"), closed]);
      }
    },
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}

/** Gives a test a folder of its own and removes it afterwards. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-process-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
