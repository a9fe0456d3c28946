/** The worker process of the load generator. */
import { setImmediate as waitForNextTick } from "node:timers/promises";
import { serveTasks } from "../child-processes.js";
import { getCpuSeconds } from "../processes.js";
import { percentile } from "../report/estimate.js";
import { createHttp1Client } from "./http1-client.js";
import { createHttp2Client, openStreams } from "./http2-client.js";
import type { Load, LoadClient, LoadRequest, LoadResult, LoadTask } from "./load.js";

serveTasks<LoadTask, LoadResult>(async (task) => {
  try {
    return await run(task);
  } catch (error) {
    throw new Error(`${task.load.verb} ${task.load.path}: ${(error as Error).message}`);
  }
});

interface Measurements {
  /** In milliseconds. */
  readonly latencies: number[];
  readonly responses: string[];
}

/** Opening the connections does not count. */
async function run({ load, seconds, pid, databasePid }: LoadTask): Promise<LoadResult> {
  const measurements: Measurements = { latencies: [], responses: [] };
  const driver = await openDriver(load);
  try {
    const getDatabaseCpu = () => (databasePid ? getCpuSeconds(databasePid) : Number.NaN);
    const [cpuBefore, databaseBefore] = [getCpuSeconds(pid), getDatabaseCpu()];
    const started = performance.now();
    await driver.run(started + seconds * 1000, measurements);
    const elapsed = (performance.now() - started) / 1000;
    return summarize(measurements, {
      seconds: elapsed,
      cpuSeconds: getCpuSeconds(pid) - cpuBefore,
      databaseCpuSeconds: getDatabaseCpu() - databaseBefore,
    });
  } finally {
    driver.close();
  }
}

interface Driver {
  run(deadline: number, measurements: Measurements): Promise<void>;
  close(): void;
}

async function openDriver(load: Load): Promise<Driver> {
  if (load.protocol === "stream") {
    const streams = await openStreams(load);
    return {
      run: (deadline, { latencies }) => streams.run(deadline, latencies),
      close: streams.close,
    };
  }
  const client = load.protocol === "http1" ? createHttp1Client(load) : createHttp2Client(load);
  await client.open();
  const { rate } = load;
  return {
    run: (deadline, measurements) =>
      rate === undefined
        ? runClosedLoop(client, load, deadline, measurements)
        : runOpenLoop(client, load, rate, deadline, measurements),
    close: client.close,
  };
}

/** Sends one request at a time on each connection. */
async function runClosedLoop(
  client: LoadClient,
  load: Load,
  deadline: number,
  { latencies, responses }: Measurements,
): Promise<void> {
  const { requests, connections } = load;
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
  { requests, connections }: Load,
  rate: number,
  deadline: number,
  { latencies }: Measurements,
): Promise<void> {
  const interval = 1000 / rate;
  const idle = Array.from({ length: connections }, (_, index) => index);
  const started = performance.now();
  const total = Math.floor((deadline - started) / interval);
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

function summarize(
  { latencies, responses }: Measurements,
  spent: Pick<LoadResult, "seconds" | "cpuSeconds" | "databaseCpuSeconds">,
): LoadResult {
  if (latencies.length === 0) {
    throw new Error("no request was sent");
  }
  return {
    ...spent,
    requests: latencies.length,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    responses,
  };
}
