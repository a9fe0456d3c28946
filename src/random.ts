import { randomFillSync } from "node:crypto";

/** Bytes asked of the system at once: to ask costs far more than the bytes. */
const stock = Buffer.alloc(4_096);
let used = stock.length;

/** Fills a target of at most the size of the stock with random bytes fit for secrets, of which no copy stays. */
export function drawRandom(target: Uint8Array): void {
  if (used + target.length > stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  const drawn = stock.subarray(used, used + target.length);
  target.set(drawn);
  drawn.fill(0);
  used += target.length;
}
