import type { Awaitable } from "../awaitable.js";
import type { Store } from "../store/store.js";

/** For how many milliseconds the word of a store is good that has to be waited for. */
const lifetime = 1_000;

interface Known {
  readonly moment: number;
  /** As `performance.now()` tells time. */
  readonly askedAt: number;
}

/**
 * Tells when a check is decided, by the clock that judges when keys end: who
 * keeps an answer until its key ends takes one from the other. To ask a
 * database each time would cost as much as the check, so its word is carried
 * on for a while, counted from when it was asked: never too early.
 */
export function createCheckedAt({ now }: Pick<Store, "now">): () => Awaitable<number> {
  let known: Known | undefined;
  let asking: Promise<number> | undefined;

  async function wait(answer: Promise<number>, askedAt: number): Promise<number> {
    try {
      const moment = await answer;
      known = { moment, askedAt };
      return carriedOn(known);
    } finally {
      asking = undefined;
    }
  }

  return () => {
    if (known && performance.now() - known.askedAt < lifetime) {
      return carriedOn(known);
    }
    if (asking) {
      return asking;
    }
    const askedAt = performance.now();
    const answer = now();
    if (answer instanceof Promise) {
      asking = wait(answer, askedAt);
      return asking;
    }
    return answer;
  };
}

function carriedOn({ moment, askedAt }: Known): number {
  return Math.ceil(moment + performance.now() - askedAt);
}
