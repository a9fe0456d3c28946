import { setImmediate as nextTurn } from "node:timers/promises";
import { answerOrders } from "../child-processes.js";
import { percentile } from "../report/table.js";
import { runAutocannon } from "./external-tools.js";
import { createHttp1Client } from "./http1-client.js";
import { createHttp2Client, driveStreams } from "./http2-client.js";
import type { Load, LoadClient, LoadRequest, LoadResult, Seen } from "./load.js";

/** A process that makes load on demand. */

answerOrders<Load, LoadResult>(async (load) => {
  try {
    return await driverOf(load)(load);
  } catch (error) {
    throw new Error(`${load.verb} ${load.path}: ${(error as Error).message}`);
  }
});

function driverOf(load: Load): (load: Load) => Promise<LoadResult> {
  if (load.protocol === "stream") {
    return driveStreams;
  }
  const isPlainRead = load.protocol === "http1" && load.verb === "GET";
  return isPlainRead && !load.once && load.rate === undefined ? runAutocannon : drive;
}

/** Sends the requests of a load over a client of ours. */
export async function drive(load: Load): Promise<LoadResult> {
  const client = load.protocol === "http1" ? createHttp1Client(load) : createHttp2Client(load);
  const seen: Seen = { latencies: [], answers: [] };
  try {
    await client.open();
    const started = performance.now();
    const { rate } = load;
    await (rate === undefined
      ? keepBusy(client, load, seen)
      : sendAtRate(client, load, rate, seen));
    return sumUp(seen, (performance.now() - started) / 1000);
  } finally {
    client.close();
  }
}

/** Keeps each connection busy with one request at a time. */
async function keepBusy(client: LoadClient, load: Load, { latencies, answers }: Seen) {
  const { requests, connections } = load;
  const deadline = performance.now() + load.seconds * 1000;
  let sent = 0;

  async function keepOneBusy(connection: number): Promise<void> {
    while (performance.now() < deadline && !(load.once && sent >= requests.length)) {
      const request = requests[sent++ % requests.length] as LoadRequest;
      const start = performance.now();
      const answer = await client.send(request, connection);
      latencies.push(performance.now() - start);
      if (load.keepAnswers) {
        answers.push(answer);
      }
    }
  }

  await Promise.all(Array.from({ length: connections }, (_, at) => keepOneBusy(at)));
}

function sumUp({ latencies, answers }: Seen, seconds: number): LoadResult {
  if (latencies.length === 0) {
    throw new Error("there was nothing to send");
  }
  return {
    requests: latencies.length,
    seconds,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    answers,
  };
}

/**
 * Starts requests at even intervals and takes each latency from the moment at
 * which the request was due. One that has to wait, because all connections are
 * busy or because this process was late, has waited: a server that stands
 * still is not spared the requests that would have come meanwhile.
 */
async function sendAtRate(
  client: LoadClient,
  { requests, connections, seconds }: Load,
  rate: number,
  { latencies }: Seen,
): Promise<void> {
  const interval = 1000 / rate;
  const all = Math.floor(seconds * rate);
  const idle = Array.from({ length: connections }, (_, at) => at);
  const started = performance.now();
  let sent = 0;
  let failure: unknown;

  async function sendOne(connection: number): Promise<void> {
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

  // Timers know only whole milliseconds, so that this turns without a pause.
  while (latencies.length < all && failure === undefined) {
    const dueByNow = Math.min(all, Math.floor((performance.now() - started) / interval) + 1);
    while (sent < dueByNow && idle.length > 0) {
      sendOne(idle.pop() as number);
    }
    await nextTurn();
  }
  if (failure !== undefined) {
    throw failure;
  }
}
