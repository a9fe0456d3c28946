import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { overloaded } from "../../../errors.js";
import { waitForNextTick } from "../../../lib/event-loop.js";
import { createSemaphore } from "../../../lib/semaphore.js";

/** Up to this size, decompressing in this thread is faster than in another. */
const maxSyncBytes = 16 * 1024;

/** Larger messages that are decompressed at the same time, and the maximum expected wait in milliseconds. */
const maxConcurrent = 2;
const maxWaitMs = 500;

/** The initial estimate of the duration of one, in milliseconds. */
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
