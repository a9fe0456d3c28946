import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
