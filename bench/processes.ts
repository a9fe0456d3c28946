import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const isLinux = process.platform === "linux";

/** The user and system CPU time of all threads of a process and its descendants. */
export function getCpuSeconds(pid: number): number {
  return isLinux
    ? listProcessTree(pid).reduce((sum, member) => sum + getOwnCpuSeconds(member), 0)
    : Number.NaN;
}

function getOwnCpuSeconds(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1"), 10),
  );
  return nanoseconds.reduce((sum, time) => sum + time, 0) / 1e9;
}

/** Lists a process and its descendants. Only the process itself outside of Linux. */
export function listProcessTree(pid: number): number[] {
  if (!isLinux) {
    return [pid];
  }
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean),
  );
  return [pid, ...children.flatMap((child) => listProcessTree(Number(child)))];
}

/** Counts the open file descriptors of a process and its descendants. */
export function countOpenFiles(pid: number): number {
  return isLinux
    ? listProcessTree(pid).reduce(
        (sum, member) => sum + readdirSync(`/proc/${member}/fd`).length,
        0,
      )
    : Number.NaN;
}

export interface Memory {
  /** The resident set size in megabytes. */
  readonly rss: number;
  /** Without mapped pages, which processes share and the kernel can reclaim. */
  readonly unmapped: number;
}

/** The memory of the largest process of a server. */
export function getLargestMemory(pid: number): Memory {
  return getMemory(pid).reduce((a, b) => (a.unmapped > b.unmapped ? a : b));
}

/** The memory of each process of a server. */
export function getMemory(pid: number): Memory[] {
  return listProcessTree(pid).map((member) => {
    const status = isLinux ? readFileSync(`/proc/${member}/status`, "latin1") : "";
    const megabytes = (field: string) =>
      Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1] ?? Number.NaN) / 1024;
    return { rss: megabytes("VmRSS"), unmapped: megabytes("RssAnon") };
  });
}

/** The CPU cores of each part. Absent if there are too few or `taskset` is missing. */
export interface Cores {
  readonly server?: string;
  /** For a server with several processes: includes a spare core if there is one. */
  readonly workers?: string;
  readonly load?: string;
  readonly database?: string;
}

/**
 * Separates the server from the load generator. The database shares the core of
 * the generator if there is no third one.
 */
export function chooseCores(): Cores {
  const [server, load, ...others] = listAllowedCores();
  const [spare] = others;
  if (!isInstalled("taskset") || server === undefined || load === undefined) {
    return {};
  }
  const workers = spare === undefined ? server : `${server},${spare}`;
  return { server, workers, load, database: others.length > 0 ? others.join(",") : load };
}

/** Returns a command that runs pinned to some cores. */
export function pinCommand(
  cores: string | undefined,
  command: string,
  args: readonly string[],
): [command: string, args: string[]] {
  return cores === undefined
    ? [command, [...args]]
    : ["taskset", ["--cpu-list", cores, command, ...args]];
}

/** Pins a running process with all its threads. */
export function pinProcess(pid: number, cores: string | undefined): void {
  if (cores !== undefined) {
    execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cores, String(pid)], {
      stdio: "ignore",
    });
  }
}

function isInstalled(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** The cores that this process may use. */
function listAllowedCores(): string[] {
  if (process.platform !== "linux") {
    return [];
  }
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return (list ?? "").split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
  });
}
