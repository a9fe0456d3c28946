/** The worker process of the load generator. */
import { setImmediate as waitForNextTick } from "node:timers/promises";
import { serveTasks } from "../child-processes.js";
import { percentile } from "../report/table.js";
import { runAutocannon } from "./external-tools.js";
import { createHttp1Client } from "./http1-client.js";
import { createHttp2Client, runStreamLoad } from "./http2-client.js";
import type { Load, LoadClient, LoadRequest, LoadResult } from "./load.js";

serveTasks<Load, LoadResult>(async (load) => {
  try {
    return await chooseRunner(load)(load);
  } catch (error) {
    throw new Error(`${load.verb} ${load.path}: ${(error as Error).message}`);
  }
});

function chooseRunner(load: Load): (load: Load) => Promise<LoadResult> {
  if (load.protocol === "stream") {
    return runStreamLoad;
  }
  const isHttp1Get = load.protocol === "http1" && load.verb === "GET";
  return isHttp1Get && !load.once && load.rate === undefined ? runAutocannon : runLoad;
}

interface Measurements {
  /** In milliseconds. */
  readonly latencies: number[];
  readonly responses: string[];
}

async function runLoad(load: Load): Promise<LoadResult> {
  const client = load.protocol === "http1" ? createHttp1Client(load) : createHttp2Client(load);
  const measurements: Measurements = { latencies: [], responses: [] };
  try {
    await client.open();
    const started = performance.now();
    const { rate } = load;
    await (rate === undefined
      ? runClosedLoop(client, load, measurements)
      : runOpenLoop(client, load, rate, measurements));
    return summarize(measurements, (performance.now() - started) / 1000);
  } finally {
    client.close();
  }
}

/** Sends one request at a time on each connection. */
async function runClosedLoop(
  client: LoadClient,
  load: Load,
  { latencies, responses }: Measurements,
): Promise<void> {
  const { requests, connections } = load;
  const deadline = performance.now() + load.seconds * 1000;
  let sent = 0;

  async function runConnection(connection: number): Promise<void> {
    while (performance.now() < deadline && !(load.once && sent >= requests.length)) {
      const request = requests[sent++ % requests.length] as LoadRequest;
      const start = performance.now();
      const response = await client.send(request, connection);
      latencies.push(performance.now() - start);
      if (load.keepResponses) {
        responses.push(response);
      }
    }
  }

  await Promise.all(Array.from({ length: connections }, (_, index) => runConnection(index)));
}

/**
 * Sends requests at a constant rate and measures each latency from the time the
 * request was due, so that queueing counts (no coordinated omission).
 */
async function runOpenLoop(
  client: LoadClient,
  { requests, connections, seconds }: Load,
  rate: number,
  { latencies }: Measurements,
): Promise<void> {
  const interval = 1000 / rate;
  const total = Math.floor(seconds * rate);
  const idle = Array.from({ length: connections }, (_, index) => index);
  const started = performance.now();
  let sent = 0;
  let failure: unknown;

  async function sendNext(connection: number): Promise<void> {
    const due = started + sent * interval;
    const request = requests[sent++ % requests.length] as LoadRequest;
    try {
      await client.send(request, connection);
      latencies.push(performance.now() - due);
      idle.push(connection);
    } catch (error) {
      failure ??= error;
    }
  }

  // Busy loop, because timers have a resolution of one millisecond.
  while (latencies.length < total && failure === undefined) {
    const dueByNow = Math.min(total, Math.floor((performance.now() - started) / interval) + 1);
    while (sent < dueByNow && idle.length > 0) {
      sendNext(idle.pop() as number);
    }
    await waitForNextTick();
  }
  if (failure !== undefined) {
    throw failure;
  }
}

function summarize({ latencies, responses }: Measurements, seconds: number): LoadResult {
  if (latencies.length === 0) {
    throw new Error("no request was sent");
  }
  return {
    requests: latencies.length,
    seconds,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    responses,
  };
}
