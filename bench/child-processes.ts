import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pinCommand } from "./processes.js";

type Cleanup = () => unknown;

const stopTimeoutMs = 10_000;
const cleanups: Cleanup[] = [];
let isShuttingDown = false;

/** Registers a cleanup for the end of the benchmark, even if it fails or is interrupted. */
export function onExit(cleanup: Cleanup): void {
  cleanups.push(cleanup);
  if (isShuttingDown) {
    // Keeps pending work from starting more processes.
    throw new Error("the benchmark is shutting down");
  }
}

export function stopOnExit(child: ChildProcess): void {
  onExit(() => stop(child));
}

/** Stops a process and waits for its exit. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
  await exited;
  clearTimeout(timer);
}

/** Runs all cleanups in reverse order. A failed one does not prevent the others. */
export async function cleanUp(): Promise<void> {
  isShuttingDown = true;
  for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) {
    try {
      await cleanup();
    } catch (error) {
      console.error(`cleanup: ${error}`);
    }
  }
}

/** Creates a temporary folder that is removed on exit. */
export async function createTempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-bench-"));
  onExit(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Rejects on a signal or an uncaught exception. */
export function waitForInterrupt(): Promise<never> {
  return new Promise((_, reject) => {
    process.on("uncaughtException", reject);
    // The terminal and npm may both send the signal. The second one must not cut the cleanup short.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => reject(new Error(`stopped by ${signal}`)));
    }
  });
}

/** A separate process that runs one task at a time, so that its CPU time is counted separately. */
export interface Worker<Task, Result> {
  run(task: Task): Promise<Result>;
}

type Reply<Result> = { readonly result: Result } | { readonly error: string };

/** Starts a module that calls {@link serveTasks}. */
export function startWorker<Task extends object, Result>(
  file: URL,
  cores: string | undefined,
): Worker<Task, Result> {
  const command = pinCommand(cores, process.execPath, ["--import", "tsx", fileURLToPath(file)]);
  const child = spawn(...command, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // JSON, the default, would not preserve byte arrays.
    serialization: "advanced",
  });
  stopOnExit(child);

  return {
    async run(task) {
      const settled = new AbortController();
      const { signal } = settled;
      try {
        child.send(task);
        const [message] = await Promise.race([
          once(child, "message", { signal }),
          once(child, "exit", { signal }).then(() => {
            throw new Error(`${file.pathname} has exited`);
          }),
        ]);
        const reply = message as Reply<Result>;
        if ("error" in reply) {
          throw new Error(reply.error);
        }
        return reply.result;
      } finally {
        settled.abort();
      }
    },
  };
}

/** Runs in the worker process: handles tasks until the benchmark disconnects. */
export function serveTasks<Task, Result>(handle: (task: Task) => Promise<Result>): void {
  async function reply(task: Task): Promise<Reply<Result>> {
    try {
      return { result: await handle(task) };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
  process.on("message", async (task) => {
    process.send?.(await reply(task as Task));
  });
  process.on("disconnect", () => process.exit());
}
