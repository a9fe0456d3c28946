import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import autocannon from "autocannon";
import { endWithBench } from "../child-processes.js";
import { pinned } from "../processes.js";
import { percentile } from "../report/table.js";
import { requestBytes } from "./http1-client.js";
import { grpcFrame, grpcHeaders } from "./http2-client.js";
import { keyHeader, type Load, type LoadRequest, type LoadResult, loadHost } from "./load.js";

/** One h2load sends one request over and over: several at a time ask about several keys. */
const processes = 4;

const runH2loadCommand = promisify(execFile);

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
  const running = runH2loadCommand(...pinned(cores, "h2load", [...options, url]));
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
const runWrkCommand = promisify(execFile);

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
  const running = runWrkCommand(...pinned(cores, "wrk", [...options, ...limits, url, "--", file]));
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

/** It makes all requests ready for each of its connections, before it begins. */
const mostRequests = 500;

/** GET over HTTP/1.1 where there is no wrk. */
export async function runAutocannon(load: Load): Promise<LoadResult> {
  const run = autocannon({
    url: `http://${loadHost}:${load.port}${load.path}`,
    connections: load.connections,
    duration: load.seconds,
    requests: load.requests.slice(0, mostRequests).map(({ key, path = load.path }) => ({
      path,
      headers: { [keyHeader]: key },
    })),
  });
  // Its own histogram knows only whole milliseconds, and its clock starts before it is ready.
  const latencies: number[] = [];
  let started = 0;
  let ended = 0;
  let refused = 0;
  run.on("response", (_client, status, _bytes, milliseconds) => {
    ended = performance.now();
    started ||= ended - milliseconds;
    latencies.push(milliseconds);
    refused += status === load.status ? 0 : 1;
  });
  const { errors } = await run;
  if (errors + refused > 0 || latencies.length === 0) {
    throw new Error(`${refused} answers with another status than ${load.status}, ${errors} broken`);
  }
  return {
    requests: latencies.length,
    seconds: (ended - started) / 1000,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    answers: [],
  };
}
