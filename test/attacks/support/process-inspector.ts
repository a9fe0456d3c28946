import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { listProcessTree } from "../../../bench/processes.js";
import type { CapturedProcess } from "../../support/service/run-latchkey.js";
import { until } from "../../support/until.js";
import type { Outputs } from "./recording.js";

/** Inspects the main process and the workers of a service from outside. */
interface ProcessInspector {
  /** Environment variables that the service needs for inspection. */
  readonly environment: Readonly<Record<string, string>>;
  /** Files of each process in /proc: command line, name, environment, status. */
  readProcFiles(service: CapturedProcess): Promise<Outputs>;
  /** Heap snapshots of each process, after garbage collection. */
  readHeaps(service: CapturedProcess): Promise<Outputs>;
  /** The trace spans of all processes. */
  readSpans(): Promise<Outputs>;
}

/** Heap snapshots and spans are written to `folder`. */
export function createProcessInspector(folder: string): ProcessInspector {
  const HEAP_SNAPSHOT = join(folder, "heap");
  const SPAN_FILE = join(folder, "spans");
  const preloads = ["heap-snapshot", "span-file"].map(
    (name) => `./test/attacks/support/${name}.mjs`,
  );
  const NODE_OPTIONS = preloads.map((path) => `--import ${path}`).join(" ");

  return {
    environment: { HEAP_SNAPSHOT, SPAN_FILE, NODE_OPTIONS },

    async readProcFiles({ child }) {
      const files = pidsOf(child).flatMap((pid) =>
        ["cmdline", "comm", "environ", "status"].map((name) => `/proc/${pid}/${name}`),
      );
      return readAll(files.filter((path) => existsSync(path)));
    },

    async readHeaps({ child }) {
      const pids = pidsOf(child);
      const files = pids.map((pid) => `${HEAP_SNAPSHOT}.${pid}`);
      await Promise.all(files.map((path) => rm(path, { force: true })));
      for (const pid of pids) {
        process.kill(pid, "SIGUSR2");
      }
      await until(async () => files.every((path) => existsSync(path)));
      return readAll(files);
    },

    async readSpans() {
      const prefix = `${basename(SPAN_FILE)}.`;
      const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
      return readAll(names.map((name) => join(dirname(SPAN_FILE), name)));
    },
  };
}

const pidsOf = ({ pid }: CapturedProcess["child"]) => listProcessTree(pid as number);

function readAll(files: readonly string[]): Promise<Outputs> {
  return Promise.all(
    files.map(async (path): Promise<Outputs[number]> => [path, await readFile(path)]),
  );
}
