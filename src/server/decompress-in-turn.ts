import type { Compression } from "@connectrpc/connect/protocol";
import { overloaded } from "../errors.js";

/** How many messages are decompressed at once, and how many may wait for that, for how many milliseconds. */
const mostAtOnce = 2;
const mostWaiting = 1_000;
const longestWait = 2_000;

/**
 * Has a few messages decompressed at a time, and the rest wait for their turn:
 * nobody knows what becomes of a few bytes before it is there, and many such
 * messages at once would take all memory.
 */
export function decompressInTurn(compressions: readonly Compression[]): Compression[] {
  let underWay = 0;
  const waiting: (() => void)[] = [];

  async function takeTurn(): Promise<void> {
    if (underWay < mostAtOnce) {
      underWay++;
      return;
    }
    if (waiting.length >= mostWaiting) {
      throw overloaded();
    }
    const since = performance.now();
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (performance.now() - since > longestWait) {
      passTurnOn();
      throw overloaded();
    }
  }

  function passTurnOn(): void {
    const next = waiting.shift();
    if (next) {
      next();
    } else {
      underWay--;
    }
  }

  return compressions.map(({ name, compress, decompress }) => ({
    name,
    compress,
    async decompress(bytes, limit) {
      await takeTurn();
      try {
        return await decompress(bytes, limit);
      } finally {
        // What has been decompressed is read first, and others get a word in.
        setImmediate(passTurnOn);
      }
    },
  }));
}
