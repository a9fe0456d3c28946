import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { endWithBench } from "../cleanup.js";
import { pinned } from "../cores.js";
import type { Load, LoadResult } from "./load.js";

/** What wrk.lua prints; times in microseconds. */
interface Summary {
  readonly requests: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
  readonly broken: number;
}

const script = fileURLToPath(new URL("wrk.lua", import.meta.url));
const run = promisify(execFile);

export async function runWrk(
  load: Load,
  folder: string,
  cores: string | undefined,
): Promise<LoadResult> {
  const keys = join(folder, "keys");
  await writeFile(keys, load.requests.map(({ key }) => `${key}\n`).join(""));

  const options = ["--threads", "1", "--connections", String(load.connections)];
  const limits = ["--duration", `${load.seconds}s`, "--timeout", "5s", "--script", script];
  const url = `http://127.0.0.1:${load.port}${load.path}`;
  const running = run(...pinned(cores, "wrk", [...options, ...limits, url, "--", keys]));
  endWithBench(running.child);
  const { stdout } = await running;

  const summary: Summary = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  if (summary.refused + summary.broken > 0 || summary.requests === 0) {
    throw new Error(`${load.verb} ${load.path} failed under wrk:\n${stdout}`);
  }
  return {
    requests: summary.requests,
    seconds: summary.microseconds / 1_000_000,
    p50: summary.p50 / 1000,
    p99: summary.p99 / 1000,
    answers: [],
  };
}
