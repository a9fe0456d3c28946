import type { Caller } from "../auth/caller.js";
import type { ReadAddressOf } from "../auth/caller-address.js";
import type { Peer } from "../call.js";
import { tooManyStreams } from "../errors.js";
import { onIteratorEnd } from "../lib/async.js";
import { clientNetworkKey } from "../lib/networks.js";

/** The limit for unauthenticated callers, if it is lower than the configured one. */
const unauthenticatedLimit = 64;

/** Opens a stream. */
type Open<T> = () => Promise<AsyncIterable<T>>;

/** Limits the open streams. Refuses to open more. */
export interface StreamLimit {
  /** Limits the streams of an application or session. */
  ofCaller<T>(caller: Caller, open: Open<T>): Promise<AsyncIterable<T>>;

  /** Limits the streams of a client network, for methods that need no key. */
  ofNetwork<T>(peer: Peer, open: Open<T>): Promise<AsyncIterable<T>>;
}

export function createStreamLimit(limit: number, readAddressOf: ReadAddressOf): StreamLimit {
  const counts = new Map<string, number>();

  function acquire(key: string, max: number): void {
    const count = counts.get(key) ?? 0;
    if (count >= max) {
      throw tooManyStreams(max);
    }
    counts.set(key, count + 1);
  }

  function release(key: string): void {
    const count = counts.get(key) ?? 0;
    if (count > 1) {
      counts.set(key, count - 1);
    } else {
      counts.delete(key);
    }
  }

  async function openLimited<T>(key: string, max: number, open: Open<T>) {
    acquire(key, max);
    try {
      return onIteratorEnd(await open(), (end) => {
        release(key);
        if (end.how === "failed") {
          throw end.reason;
        }
      });
    } catch (reason) {
      release(key);
      throw reason;
    }
  }

  return {
    ofCaller: ({ session, application }, open) =>
      openLimited((session ?? application).id, limit, open),

    ofNetwork(peer, open) {
      const address = readAddressOf(peer);
      const key = address ? clientNetworkKey(address) : "";
      return openLimited(key, Math.min(limit, unauthenticatedLimit), open);
    },
  };
}
