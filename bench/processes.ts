import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

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

/** The cores that each part keeps to; absent where they are too few or cannot be chosen. */
export interface Cores {
  readonly server?: string;
  /** For a server of several processes: a second core where there is one to spare. */
  readonly workers?: string;
  readonly load?: string;
  readonly database?: string;
}

/**
 * Server and generator on cores of their own do not push each other aside. A
 * database shares the generator's core where there is no third one.
 */
export function chooseCores(): Cores {
  const [server, load, ...others] = allowedCores();
  const [spare] = others;
  if (!isInstalled("taskset") || server === undefined || load === undefined) {
    return {};
  }
  const workers = spare === undefined ? server : `${server},${spare}`;
  return { server, workers, load, database: others.length > 0 ? others.join(",") : load };
}

/** The command that runs another one on some cores. */
export function pinned(
  cores: string | undefined,
  command: string,
  args: readonly string[],
): [command: string, args: string[]] {
  return cores === undefined
    ? [command, [...args]]
    : ["taskset", ["--cpu-list", cores, command, ...args]];
}

/** Moves a process that is already running, with all its threads. */
export function pin(pid: number, cores: string | undefined): void {
  if (cores !== undefined) {
    execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cores, String(pid)], {
      stdio: "ignore",
    });
  }
}

export function isInstalled(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** The cores that this process may use, which can be fewer than the machine has. */
function allowedCores(): string[] {
  if (process.platform !== "linux") {
    return [];
  }
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return (list ?? "").split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => String(first + at));
  });
}
