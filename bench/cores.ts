import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

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
