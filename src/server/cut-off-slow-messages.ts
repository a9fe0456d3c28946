import type { Timeout } from "../timeouts.js";
import type { Http2Exchange } from "./http2-exchange.js";
import { createUnfinished } from "./unfinished-message.js";

/**
 * Passes on what arrives of a stream whose messages the protocol library
 * reads, and cuts its sender off where one that has begun does not end in time.
 */
export async function* cutOffSlowMessages(
  parts: AsyncIterable<Buffer>,
  exchange: Http2Exchange,
): AsyncGenerator<Buffer> {
  const unfinishedAfter = createUnfinished();
  const cutOff = () => exchange.cutOffBody();
  let timeout: Timeout | undefined;
  try {
    for await (const part of parts) {
      if (unfinishedAfter(part).arrived === 0) {
        timeout?.cancel();
        timeout = undefined;
      } else {
        timeout ??= exchange.bodyTimeouts.start(cutOff);
      }
      yield part;
    }
  } finally {
    timeout?.cancel();
  }
}
