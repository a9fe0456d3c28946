import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { endWithBench } from "../cleanup.js";
import { pinned } from "../cores.js";
import { type Load, type LoadResult, loadHost } from "./load.js";
import { requestBytes } from "./request-bytes.js";

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
  const file = join(folder, "wrk-requests");
  await writeFile(file, Buffer.concat(load.requests.flatMap((request) => entry(load, request))));

  const options = ["--threads", "1", "--connections", String(load.connections)];
  const limits = ["--duration", `${load.seconds}s`, "--timeout", "5s", "--script", script];
  const url = `http://${loadHost}:${load.port}${load.path}`;
  const running = run(...pinned(cores, "wrk", [...options, ...limits, url, "--", file]));
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

function entry(load: Load, request: Load["requests"][number]): Buffer[] {
  const bytes = requestBytes(load, request);
  return [Buffer.from(`${bytes.length}\n`), bytes];
}
