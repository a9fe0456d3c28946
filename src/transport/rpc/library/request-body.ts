import { overloaded } from "../../../errors.js";
import { compact } from "../../../lib/bytes.js";
import type { Timeout } from "../../../lib/timeout.js";
import { hasTooManyChunks, scheduleBody, tooManyChunks } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { envelopeSize } from "../protocols/protocol.js";

/** Content types whose messages have envelopes. */
const enveloped = /^application\/(grpc|connect\+)/i;

/**
 * Passes a body to the library and reserves memory for it. Throws if the body
 * budget is exhausted. A message counts with the bytes that have arrived and its
 * announced length, which the library allocates in advance.
 */
export async function* limitBodyMemory(
  parts: AsyncIterable<Buffer>,
  exchange: Exchange,
  limit: number,
): AsyncGenerator<Buffer> {
  const { "content-type": type = "", "content-length": length = "0" } = exchange.headers;
  const bytesAfter = enveloped.test(type)
    ? createMessageSize(limit)
    : createBodySize(Number(length));
  let size = 0;
  for await (const part of parts) {
    size += part.length;
    if (!exchange.reserveMemory(bytesAfter(part))) {
      throw overloaded();
    }
    yield compact(part);
  }
  await new Promise<void>((resolve) => scheduleBody(exchange.connection, size, resolve));
}

/** Computes the memory of a message. One over the limit takes none, as the library rejects it. */
function createMessageSize(limit: number): (part: Buffer) => number {
  const trackPart = createMessageTracker();
  let count = 0;
  return (part) => {
    const { arrived, announced } = trackPart(part);
    const continuesMessage = arrived > part.length;
    count = continuesMessage ? count + 1 : 1;
    refuseSmallParts(count, arrived);
    return announced > limit ? 0 : arrived + announced;
  };
}

function createBodySize(announced: number): (part: Buffer) => number {
  let arrived = 0;
  let count = 0;
  return (part) => {
    arrived += part.length;
    count++;
    refuseSmallParts(count, arrived);
    return arrived + announced;
  };
}

/** The library iterates over all parts for each new one. */
function refuseSmallParts(count: number, size: number): void {
  if (hasTooManyChunks(count, size)) {
    throw tooManyChunks();
  }
}

/** Passes a stream to the library, and aborts it if a message that has started does not arrive in time. */
export async function* abortSlowMessages(
  parts: AsyncIterable<Buffer>,
  exchange: Http2Exchange,
): AsyncGenerator<Buffer> {
  const trackPart = createMessageTracker();
  const abort = () => exchange.abortBody();
  let timeout: Timeout | undefined;
  try {
    for await (const part of parts) {
      if (trackPart(part).arrived === 0) {
        timeout?.cancel();
        timeout = undefined;
      } else {
        timeout ??= exchange.bodyTimeouts.start(abort);
      }
      yield part;
    }
  } finally {
    timeout?.cancel();
  }
}

/** The incomplete message at the end of a stream. All zero if there is none. */
interface PartialMessage {
  /** Bytes that have arrived, with the prefix. */
  readonly arrived: number;
  /** Its length, once that is known. */
  readonly announced: number;
}

/** Creates a function that takes the parts of a stream and returns the incomplete message after each. */
function createMessageTracker(): (part: Buffer) => PartialMessage {
  let prefix: Buffer = Buffer.alloc(0);
  let length = 0;
  let missing = 0;
  return (part) => {
    let at = 0;
    while (at < part.length) {
      if (missing > 0) {
        const taken = Math.min(missing, part.length - at);
        missing -= taken;
        at += taken;
        continue;
      }
      const end = at + envelopeSize - prefix.length;
      prefix = Buffer.concat([prefix, part.subarray(at, end)]);
      at = Math.min(end, part.length);
      if (prefix.length === envelopeSize) {
        length = prefix.readUInt32BE(1);
        missing = length;
        prefix = Buffer.alloc(0);
      }
    }
    return missing > 0
      ? { arrived: envelopeSize + length - missing, announced: length }
      : { arrived: prefix.length, announced: 0 };
  };
}
