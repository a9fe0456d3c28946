import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import autocannon from "autocannon";
import { stopOnExit } from "../child-processes.js";
import { pinCommand } from "../processes.js";
import { percentile } from "../report/table.js";
import { encodeRequest } from "./http1-client.js";
import { encodeGrpcFrame, grpcHeaders } from "./http2-client.js";
import { keyHeader, type Load, type LoadRequest, type LoadResult, loadHost } from "./load.js";

/** Each h2load process repeats one request, so several of them are needed to use several keys. */
const h2loadProcesses = 4;

const run = promisify(execFile);

export async function runH2load(
  load: Load,
  folder: string,
  cores: string | undefined,
): Promise<LoadResult> {
  const first = Math.floor(Math.random() * load.requests.length);
  const runs = await Promise.all(
    Array.from({ length: h2loadProcesses }, (_, index) => {
      const request = load.requests[(first + index * 7) % load.requests.length] as LoadRequest;
      return runH2loadProcess(load, request, join(folder, `h2load-${index}`), cores);
    }),
  );
  const latencies = runs.flat();
  if (latencies.length === 0) {
    throw new Error(`${load.path} returned no response in ${load.seconds} s`);
  }
  return {
    requests: latencies.length,
    seconds: load.seconds,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    responses: [],
  };
}

/** Returns the latencies in milliseconds. */
async function runH2loadProcess(
  load: Load,
  { key, path = load.path, body = "" }: LoadRequest,
  file: string,
  cores: string | undefined,
): Promise<number[]> {
  const log = `${file}.log`;
  const isGrpc = load.protocol === "grpc";
  const headers = { [keyHeader]: key, ...(isGrpc ? grpcHeaders : {}) };
  await writeFile(log, "");
  await writeFile(file, encodeGrpcFrame(body));
  const options = [
    ...["--clients", String(load.connections / h2loadProcesses)],
    ...["--duration", `${load.seconds * 1000}ms`],
    ...["--log-file", log],
    ...Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
    ...(isGrpc ? ["--data", file] : []),
  ];
  const url = `http://${loadHost}:${load.port}${path}`;
  const running = run(...pinCommand(cores, "h2load", [...options, url]));
  stopOnExit(running.child);
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

/** The output of wrk.lua, with times in microseconds. */
interface WrkSummary {
  readonly requests: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly statusErrors: number;
  readonly connectionErrors: number;
}

const wrkScript = fileURLToPath(new URL("wrk.lua", import.meta.url));

export async function runWrk(
  load: Load,
  folder: string,
  cores: string | undefined,
): Promise<LoadResult> {
  const file = join(folder, "wrk-requests");
  await writeFile(
    file,
    Buffer.concat(load.requests.flatMap((request) => encodeEntry(load, request))),
  );

  const options = ["--threads", "1", "--connections", String(load.connections)];
  const limits = ["--duration", `${load.seconds}s`, "--timeout", "5s", "--script", wrkScript];
  const url = `http://${loadHost}:${load.port}${load.path}`;
  const running = run(...pinCommand(cores, "wrk", [...options, ...limits, url, "--", file]));
  stopOnExit(running.child);
  const { stdout } = await running;

  const summary: WrkSummary = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  if (summary.statusErrors + summary.connectionErrors > 0 || summary.requests === 0) {
    throw new Error(`${load.verb} ${load.path} failed under wrk:\n${stdout}`);
  }
  return {
    requests: summary.requests,
    seconds: summary.microseconds / 1_000_000,
    p50: summary.p50 / 1000,
    p99: summary.p99 / 1000,
    responses: [],
  };
}

function encodeEntry(load: Load, request: LoadRequest): Buffer[] {
  const bytes = encodeRequest(load, request);
  return [Buffer.from(`${bytes.length}\n`), bytes];
}

/** autocannon prepares all requests for each connection before it starts. */
const maxAutocannonRequests = 500;

/** Sends GET over HTTP/1.1 if wrk is not installed. */
export async function runAutocannon(load: Load): Promise<LoadResult> {
  const run = autocannon({
    url: `http://${loadHost}:${load.port}${load.path}`,
    connections: load.connections,
    duration: load.seconds,
    requests: load.requests.slice(0, maxAutocannonRequests).map(({ key, path = load.path }) => ({
      path,
      headers: { [keyHeader]: key },
    })),
  });
  // Its histogram has a resolution of one millisecond, and its clock starts before it is ready.
  const latencies: number[] = [];
  let started = 0;
  let ended = 0;
  let statusErrors = 0;
  run.on("response", (_client, status, _bytes, milliseconds) => {
    ended = performance.now();
    started ||= ended - milliseconds;
    latencies.push(milliseconds);
    statusErrors += status === load.status ? 0 : 1;
  });
  const { errors } = await run;
  if (errors + statusErrors > 0 || latencies.length === 0) {
    throw new Error(
      `${latencies.length} responses, ${statusErrors} of them without the status ${load.status}, ` +
        `and ${errors} connection errors`,
    );
  }
  return {
    requests: latencies.length,
    seconds: (ended - started) / 1000,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    responses: [],
  };
}
