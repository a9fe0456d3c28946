import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const isLinux = process.platform === "linux";
const ticksPerSecond = isLinux ? Number(execFileSync("getconf", ["CLK_TCK"])) : Number.NaN;

/** The time that a process and those that it started have computed, in them and in the kernel for them. */
export function cpuSeconds(pid: number): number {
  return isLinux ? familyOf(pid).reduce((sum, member) => sum + ownSeconds(member), 0) : Number.NaN;
}

function ownSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The second field is the name of the program in brackets, which may hold anything.
  const fromThird = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fromThird[11]) + Number(fromThird[12])) / ticksPerSecond;
}

/** A process, those that it started, and so on; the process alone where that cannot be seen. */
export function familyOf(pid: number): number[] {
  if (!isLinux) {
    return [pid];
  }
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean),
  );
  return [pid, ...children.flatMap((child) => familyOf(Number(child)))];
}

/** How many files, sockets and the like a process and those that it started hold open. */
export function openFiles(pid: number): number {
  return isLinux
    ? familyOf(pid).reduce((sum, member) => sum + readdirSync(`/proc/${member}/fd`).length, 0)
    : Number.NaN;
}

export interface Memory {
  /** In megabytes. */
  readonly whole: number;
  /** Without the files of a folder that are mapped into it, which all processes share and the system can take back. */
  readonly own: number;
}

/** The memory that the largest process of a server holds now. */
export function memoryOf(pid: number, dataFolder?: string): Memory {
  return memoriesOf(pid, dataFolder).reduce((a, b) => (a.own > b.own ? a : b));
}

/** The memory that each process of a server holds now. */
export function memoriesOf(pid: number, dataFolder?: string): Memory[] {
  return isLinux
    ? familyOf(pid).map((member) =>
        memoryIn(readFileSync(`/proc/${member}/smaps`, "utf8"), dataFolder),
      )
    : [{ whole: Number.NaN, own: Number.NaN }];
}

/** Sums up what the kernel tells of the mappings of a process. */
function memoryIn(smaps: string, dataFolder: string | undefined): Memory {
  let whole = 0;
  let ofData = 0;
  let isOfData = false;
  for (const line of smaps.split("\n")) {
    const resident = /^Rss:\s*(\d+) kB/.exec(line)?.[1];
    if (resident !== undefined) {
      whole += Number(resident);
      ofData += isOfData ? Number(resident) : 0;
    } else if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) {
      isOfData = dataFolder !== undefined && line.includes(` ${dataFolder}`);
    }
  }
  return { whole: whole / 1024, own: (whole - ofData) / 1024 };
}

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
