import autocannon from "autocannon";
import { percentile } from "../statistics.js";
import { keyHeader, type Load, type LoadResult, loadHost } from "./load.js";

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
