import { percentile } from "../statistics.js";
import { createGrpcClient } from "./grpc-client.js";
import type { Load, LoadRequest, LoadResult } from "./load.js";
import { createRestClient } from "./rest-client.js";

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

/** Keeps each connection busy with one request at a time. */
export async function drive(load: Load): Promise<LoadResult> {
  const { requests, connections } = load;
  const client = load.protocol === "grpc" ? createGrpcClient(load) : createRestClient(load);
  const latencies: number[] = [];
  const answers: string[] = [];
  let sent = 0;
  let started = 0;
  let deadline = 0;

  async function keepBusy(connection: number): Promise<void> {
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

  try {
    await client.open();
    started = performance.now();
    deadline = started + load.seconds * 1000;
    await Promise.all(Array.from({ length: connections }, (_, connection) => keepBusy(connection)));
  } finally {
    client.close();
  }
  if (latencies.length === 0) {
    throw new Error("there was nothing to send");
  }
  return {
    requests: latencies.length,
    seconds: (performance.now() - started) / 1000,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    answers,
  };
}
