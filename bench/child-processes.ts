import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pinned } from "./processes.js";

type Undo = () => unknown;

const stopLimit = 10_000;

const undos: Undo[] = [];

let isEnding = false;

/** Remembers how to undo something, for when the benchmark ends, however it ends. */
export function onExit(undo: Undo): void {
  undos.push(undo);
  if (isEnding) {
    // Whoever is still at work must not start anything more.
    throw new Error("the benchmark is ending");
  }
}

/** Sees to it that a process does not outlive the benchmark. */
export function endWithBench(child: ChildProcess): void {
  onExit(() => stop(child));
}

/** Ends a process, and waits until it is gone. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopLimit);
  await exited;
  clearTimeout(timer);
}

/** Undoes everything, the last first. One that fails does not keep the others from being undone. */
export async function cleanUp(): Promise<void> {
  isEnding = true;
  for (let undo = undos.pop(); undo; undo = undos.pop()) {
    try {
      await undo();
    } catch (error) {
      console.error(`cleaning up: ${error}`);
    }
  }
}

/** A folder for everything that must not stay. */
export async function scratchFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-bench-"));
  onExit(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Rejects when somebody wants the benchmark to stop, or something breaks behind its back. */
export function interruption(): Promise<never> {
  return new Promise((_, reject) => {
    process.on("uncaughtException", reject);
    // A signal may come twice, from the terminal and from npm: the second must not cut the cleaning short.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => reject(new Error(`stopped by ${signal}`)));
    }
  });
}

/** A process that does what it is asked, one thing at a time, so that its work is not counted as another's. */
export interface WorkerProcess<Order, Result> {
  ask(order: Order): Promise<Result>;
}

type Reply<Result> = { readonly result: Result } | { readonly error: string };

/** Starts a file of the benchmark, which is to call {@link answerOrders}. */
export function startWorker<Order extends object, Result>(
  file: URL,
  cores: string | undefined,
): WorkerProcess<Order, Result> {
  const command = pinned(cores, process.execPath, ["--import", "tsx", fileURLToPath(file)]);
  const child = spawn(...command, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Bytes then stay bytes.
    serialization: "advanced",
  });
  endWithBench(child);

  async function ask(order: Order): Promise<Result> {
    const settled = new AbortController();
    const { signal } = settled;
    try {
      child.send(order);
      const [message] = await Promise.race([
        once(child, "message", { signal }),
        once(child, "exit", { signal }).then(() => {
          throw new Error(`${file.pathname} has ended`);
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
  }

  return { ask };
}

/** The side of the worker: answers all orders until the benchmark is gone. */
export function answerOrders<Order, Result>(carryOut: (order: Order) => Promise<Result>): void {
  async function reply(order: Order): Promise<Reply<Result>> {
    try {
      return { result: await carryOut(order) };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
  process.on("message", async (order) => {
    process.send?.(await reply(order as Order));
  });
  process.on("disconnect", () => process.exit());
}
