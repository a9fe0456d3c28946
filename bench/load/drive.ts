import { percentile } from "../statistics.js";
import { createHttp1Client } from "./http1-client.js";
import { createHttp2Client } from "./http2-client.js";
import type { Load, LoadRequest, LoadResult } from "./load.js";
import { sendAtRate } from "./send-at-rate.js";

/** Sends single requests over connections that stay open. */
export interface LoadClient {
  /**
   * Opens all connections. A busy server accepts only one with each turn of its
   * event loop, which would be counted as the latency of requests.
   */
  open(): Promise<void>;
  /** Resolves with the body of the answer; any other status than the load's throws. */
  send(request: LoadRequest, connection: number): Promise<string>;
  close(): void;
}

/** What was seen of a load while it lasted. */
export interface Seen {
  /** In milliseconds. */
  readonly latencies: number[];
  readonly answers: string[];
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
