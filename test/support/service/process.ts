import {
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  execFileSync,
  type SpawnOptions,
  spawn,
} from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the command `latchkey` runs, built before the first test. */
export const latchkeyPath = "dist/src/main.js";

/** A process whose output is read as it comes. */
export interface CapturedProcess {
  readonly child: ChildProcess;
  /** All that it wrote so far. */
  readonly output: { stdout: string; stderr: string };
  /** Resolves when its output matches, and fails when it ends before that. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code when it has ended. */
  ended(): Promise<number | null>;
}

/** The command `latchkey` in a process of its own. */
export type LatchkeyProcess = CapturedProcess;

export interface RunOptions extends Pick<SpawnOptions, "detached"> {
  /** A command that runs the command line after it, such as `setpriv --bounding-set …`. */
  readonly prefix?: readonly string[];
}

export function runLatchkey(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  { prefix = [], detached = false }: RunOptions = {},
): LatchkeyProcess {
  const { PATH = "" } = process.env;
  const [command = "", ...rest] = [...prefix, process.execPath, latchkeyPath, ...args];
  // One process unless a test asks for more, so that other tests keep the other cores.
  const child = spawn(command, rest, {
    env: { PATH, HOST: "127.0.0.1", WORKERS: "1", ...environment },
    stdio: "pipe",
    detached,
  });
  return captureOutput(child);
}

export function captureOutput(child: ChildProcessWithoutNullStreams): CapturedProcess {
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

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  // Slim images of Linux have no `ps`.
  return process.platform === "linux" ? childrenInProc(pid) : childrenByPs(pid);
}

function childrenInProc(pid: number): number[] {
  const tasks = unlessEnded(() => readdirSync(`/proc/${pid}/task`));
  return tasks.flatMap((task) =>
    unlessEnded(() => numbersIn(readFileSync(`/proc/${pid}/task/${task}/children`))),
  );
}

/** Nothing, where the process or thread has just ended. */
function unlessEnded<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) {
      return [];
    }
    throw error;
  }
}

function childrenByPs(parent: number): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).split("\n");
  return rows.map(numbersIn).flatMap(([pid = 0, ppid]) => (ppid === parent ? [pid] : []));
}

const numbersIn = (text: string | Buffer) => (String(text).match(/\d+/g) ?? []).map(Number);

/** Whether a process runs. One that has ended and that nobody has waited for does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || !isZombie(pid);
}

function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return true;
  }
}

/** Gives a test a folder of its own and removes it afterwards. */
export async function withTempFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-process-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
