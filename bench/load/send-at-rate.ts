import { setImmediate as nextTurn } from "node:timers/promises";
import type { LoadClient, Seen } from "./drive.js";
import type { Load, LoadRequest } from "./load.js";

/**
 * Starts requests at even intervals and takes each latency from the moment at
 * which the request was due. One that has to wait, because all connections are
 * busy or because this process was late, has waited: a server that stands
 * still is not spared the requests that would have come meanwhile.
 */
export async function sendAtRate(
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
