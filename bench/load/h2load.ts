import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { endWithBench } from "../cleanup.js";
import { pinned } from "../cores.js";
import { percentile } from "../statistics.js";
import { grpcFrame, grpcHeaders } from "./grpc.js";
import { keyHeader, type Load, type LoadRequest, type LoadResult, loadHost } from "./load.js";

/** One h2load sends one request over and over: several at a time ask about several keys. */
const processes = 4;

const run = promisify(execFile);

export async function runH2load(
  load: Load,
  folder: string,
  cores: string | undefined,
): Promise<LoadResult> {
  const first = Math.floor(Math.random() * load.requests.length);
  const runs = await Promise.all(
    Array.from({ length: processes }, (_, at) => {
      const request = load.requests[(first + at * 7) % load.requests.length] as LoadRequest;
      return runOne(load, request, join(folder, `h2load-${at}`), cores);
    }),
  );
  const latencies = runs.flat();
  if (latencies.length === 0) {
    throw new Error(`${load.path} was not answered once in ${load.seconds} s`);
  }
  return {
    requests: latencies.length,
    seconds: load.seconds,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    answers: [],
  };
}

/** Answers the latencies in milliseconds. */
async function runOne(
  load: Load,
  { key, path = load.path, body = "" }: LoadRequest,
  file: string,
  cores: string | undefined,
): Promise<number[]> {
  const log = `${file}.log`;
  const isGrpc = load.protocol === "grpc";
  const headers = { [keyHeader]: key, ...(isGrpc ? grpcHeaders : {}) };
  await writeFile(log, "");
  await writeFile(file, grpcFrame(body));
  const options = [
    ...["--clients", String(load.connections / processes)],
    ...["--duration", `${load.seconds * 1000}ms`],
    ...["--log-file", log],
    ...Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
    ...(isGrpc ? ["--data", file] : []),
  ];
  const url = `http://${loadHost}:${load.port}${path}`;
  const running = run(...pinned(cores, "h2load", [...options, url]));
  endWithBench(running.child);
  const { stdout } = await running;

  const rows = (await readFile(log, "utf8"))
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split("\t").map(Number));
  const failed = Number(/, (\d+) failed,/.exec(stdout)?.[1] ?? Number.NaN);
  if (failed !== 0 || rows.some(([, status]) => status !== 200)) {
    throw new Error(`${load.path} failed under h2load:\n${stdout}`);
  }
  return rows.map(([, , microseconds]) => (microseconds as number) / 1000);
}
