import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { listProcessTree } from "../../../bench/processes.js";
import type { LatchkeyProcess } from "../../support/service/process.js";
import { until } from "../../support/until.js";
import type { Written } from "./recorded-run.js";

/** What can be seen of a service from outside: of the process that was started, and of its workers. */
interface SeenProcesses {
  /** What the processes are set to, for them to be seen. */
  readonly environment: Readonly<Record<string, string>>;
  /** What Linux tells of each process: its command line, its names, its environment. */
  shown(service: LatchkeyProcess): Promise<Written>;
  /** The heap of each process, without garbage. */
  heaps(service: LatchkeyProcess): Promise<Written>;
  /** The spans of all processes. */
  spans(): Promise<Written>;
}

/** What is seen is written to a folder. */
export function createSeenProcesses(folder: string): SeenProcesses {
  const HEAP_SNAPSHOT = join(folder, "heap");
  const SPAN_FILE = join(folder, "spans");
  const preloads = ["heap-snapshot", "span-file"].map(
    (name) => `./test/attacks/support/${name}.mjs`,
  );
  const NODE_OPTIONS = preloads.map((path) => `--import ${path}`).join(" ");

  return {
    environment: { HEAP_SNAPSHOT, SPAN_FILE, NODE_OPTIONS },

    async shown({ child }) {
      const files = pidsOf(child).flatMap((pid) =>
        ["cmdline", "comm", "environ", "status"].map((name) => `/proc/${pid}/${name}`),
      );
      return readAll(files.filter((path) => existsSync(path)));
    },

    async heaps({ child }) {
      const pids = pidsOf(child);
      const files = pids.map((pid) => `${HEAP_SNAPSHOT}.${pid}`);
      await Promise.all(files.map((path) => rm(path, { force: true })));
      for (const pid of pids) {
        process.kill(pid, "SIGUSR2");
      }
      await until(async () => files.every((path) => existsSync(path)));
      return readAll(files);
    },

    async spans() {
      const start = `${basename(SPAN_FILE)}.`;
      const names = (await readdir(folder)).filter((name) => name.startsWith(start));
      return readAll(names.map((name) => join(dirname(SPAN_FILE), name)));
    },
  };
}

const pidsOf = ({ pid }: LatchkeyProcess["child"]) => listProcessTree(pid as number);

function readAll(files: readonly string[]): Promise<Written> {
  return Promise.all(
    files.map(async (path): Promise<Written[number]> => [path, await readFile(path)]),
  );
}
