import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { overloaded } from "../../../errors.js";
import { compact } from "../../../lib/bytes.js";
import { createSemaphore } from "../../../lib/concurrency.js";
import { waitForNextTick } from "../../../lib/event-loop.js";
import type { Timeout } from "../../../lib/timeout.js";
import { hasTooManyChunks, tooManyChunks, waitToParse } from "../../http/body-limits.js";
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
  await waitToParse(size);
}

/** Computes the memory of a message. A message over the limit takes none, because the library rejects it. */
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

/** The incomplete message at the end of a stream. Zero if there is none. */
interface PartialMessage {
  /** Bytes that have arrived, with the prefix. */
  readonly arrived: number;
  /** The length in its prefix, or 0 while the prefix is incomplete. */
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

/** Up to this size, decompressing in this thread is faster than in another. */
const maxSyncBytes = 16 * 1024;

/** Larger messages that are decompressed at the same time. */
const maxConcurrent = 2;

/** The maximum expected wait of a larger message, in milliseconds. */
const maxWaitMs = 500;

/** The initial estimate of the duration of one decompression, in milliseconds. */
const initialEstimateMs = 5;

const decompressSync: Readonly<Record<string, typeof gunzipSync>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
};

/**
 * Decompresses small messages synchronously, and only a few larger ones at a time:
 * the decompressed size is unknown in advance, and many at once would exhaust the
 * memory. If the expected wait is too long, the message is rejected immediately.
 */
export function limitDecompression(compressions: readonly Compression[]): Compression[] {
  const limitConcurrency = createSemaphore(maxConcurrent);
  let pending = 0;
  let averageMs = initialEstimateMs;

  function decompressLarge<T>(decompress: () => Promise<T>): Promise<T> {
    if (((pending - maxConcurrent) * averageMs) / maxConcurrent > maxWaitMs) {
      throw overloaded();
    }
    pending++;
    return new Promise((resolve, reject) => {
      void limitConcurrency(async () => {
        const startedAt = performance.now();
        await decompress().then(resolve, reject);
        averageMs += (performance.now() - startedAt - averageMs) / 8;
        // Lets the decompressed message be parsed, and other work run, before the next one.
        await waitForNextTick();
        pending--;
      });
    });
  }

  return compressions.map(({ name, compress, decompress }) => ({
    name,
    compress,
    decompress: async (bytes, limit) =>
      decompressSmall(name, bytes, limit) ?? decompressLarge(() => decompress(bytes, limit)),
  }));
}

/** Decompresses what the library compressed. */
export function decompressOwn(bytes: Uint8Array, encoding: string): Uint8Array {
  return decompressSync[encoding]?.(bytes) ?? bytes;
}

/** Decompresses a message if it is small before and after. Throws if it is corrupt. */
function decompressSmall(
  name: string,
  bytes: Uint8Array,
  limit: number,
): Uint8Array<ArrayBuffer> | undefined {
  if (bytes.length === 0 || bytes.length > maxSyncBytes) {
    return undefined;
  }
  try {
    return decompressSync[name]?.(bytes, { maxOutputLength: Math.min(maxSyncBytes, limit) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      return undefined;
    }
    throw new ConnectError("decompression failed", Code.InvalidArgument);
  }
}
