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
import { join, resolve } from "node:path";

/** The script of the command `latchkey`, built before the first test. */
export const latchkeyPath = "dist/src/main.js";

/** A process whose output is captured. */
export interface CapturedProcess {
  readonly child: ChildProcess;
  /** The output so far. */
  readonly output: { stdout: string; stderr: string };
  /** Resolves when stdout or stderr matches. Throws if the process exits first. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code. */
  ended(): Promise<number | null>;
}

export interface RunOptions extends Pick<SpawnOptions, "detached" | "cwd"> {
  /** A command that runs the rest of the command line, such as `setpriv --bounding-set …`. */
  readonly prefix?: readonly string[];
}

export function runLatchkey(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  { prefix = [], detached = false, cwd }: RunOptions = {},
): CapturedProcess {
  const { PATH = "" } = process.env;
  const [command = "", ...rest] = [...prefix, process.execPath, resolve(latchkeyPath), ...args];
  // One worker by default, to leave the other cores to other tests.
  const child = spawn(command, rest, {
    env: { PATH, HOST: "127.0.0.1", WORKERS: "1", ...environment },
    stdio: "pipe",
    detached,
    cwd,
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
  let hasExited = false;
  const closed = once(child, "close").then(() => {
    hasExited = true;
  });
  return {
    child,
    output,
    async until(pattern) {
      for (;;) {
        const match = pattern.exec(output.stdout) ?? pattern.exec(output.stderr);
        if (match) {
          return match;
        }
        if (hasExited) {
          const status = child.exitCode ?? child.signalCode;
          throw new Error(`the process exited with ${status}: ${output.stderr}`);
        }
        await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), closed]);
      }
    },
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}

/** The ids of the direct children of a process. */
export function childrenOf(pid: number): number[] {
  // Slim Linux images have no `ps`.
  return process.platform === "linux" ? readChildrenFromProc(pid) : readChildrenFromPs(pid);
}

function readChildrenFromProc(pid: number): number[] {
  const tasks = emptyIfExited(() => readdirSync(`/proc/${pid}/task`));
  return tasks.flatMap((task) =>
    emptyIfExited(() => parseNumbers(readFileSync(`/proc/${pid}/task/${task}/children`))),
  );
}

/** Returns an empty list if the process or thread has exited. */
function emptyIfExited<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) {
      return [];
    }
    throw error;
  }
}

function readChildrenFromPs(parent: number): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).split("\n");
  return rows.map(parseNumbers).flatMap(([pid = 0, ppid]) => (ppid === parent ? [pid] : []));
}

const parseNumbers = (text: string | Buffer) => (String(text).match(/\d+/g) ?? []).map(Number);

/** Whether a process is running. Zombies are not. */
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

/** Passes a temporary folder to `use` and removes it afterwards. */
export async function withTempFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-process-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
