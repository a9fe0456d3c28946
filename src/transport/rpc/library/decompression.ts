import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { overloaded } from "../../../errors.js";
import { waitForNextTick } from "../../../lib/event-loop.js";
import { createSemaphore } from "../../../lib/semaphore.js";

/** Up to how many bytes a message is small: it is there sooner than another thread could be asked for it. */
const small = 16 * 1024;

/** How many of the others are decompressed at once, and for how many milliseconds another may be expected to wait. */
const mostAtOnce = 2;
const longestWait = 500;

/** How many milliseconds one is expected to take before any has been seen. */
const expected = 5;

const decompressSync: Readonly<Record<string, typeof gunzipSync>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
};

/**
 * Decompresses small messages at once, and of the others a few at a time:
 * nobody knows what becomes of a few bytes before it is there, and many such
 * messages at once would take all memory. Those for which the wait would be
 * long are refused at once: who waits in vain takes the turn of another.
 */
export function decompressInTurn(compressions: readonly Compression[]): Compression[] {
  const inTurn = createSemaphore(mostAtOnce);
  let pending = 0;
  let usual = expected;

  function decompressLarge<T>(decompress: () => Promise<T>): Promise<T> {
    if (((pending - mostAtOnce) * usual) / mostAtOnce > longestWait) {
      throw overloaded();
    }
    pending++;
    return new Promise((resolve, reject) => {
      void inTurn(async () => {
        const begun = performance.now();
        await decompress().then(resolve, reject);
        usual += (performance.now() - begun - usual) / 8;
        // What has been decompressed is read first, and others get a word in.
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

/** Decompresses a message if it is small, and so is what becomes of it. One that is broken is refused. */
function decompressSmall(
  name: string,
  bytes: Uint8Array,
  limit: number,
): Uint8Array<ArrayBuffer> | undefined {
  if (bytes.length === 0 || bytes.length > small) {
    return undefined;
  }
  try {
    return decompressSync[name]?.(bytes, { maxOutputLength: Math.min(small, limit) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      return undefined;
    }
    throw new ConnectError("decompression failed", Code.InvalidArgument);
  }
}
