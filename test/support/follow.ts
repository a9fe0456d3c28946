import type { Change, ChangeBatch, FollowOptions, Store } from "../../src/store/store.js";
import { useStops } from "./stops.js";

/** Someone who follows the changes of a tenant. */
export interface Follower {
  /** The next batch, when it comes. */
  next(): Promise<ChangeBatch>;
  /** All changes from here to one, when that comes. */
  until(isLast: (change: Change) => boolean): Promise<Change[]>;
  /** The next answer as the iterator gives it, its end included. */
  step(): Promise<IteratorResult<ChangeBatch>>;
  /** The position of the last batch. */
  position(): string;
  stop(): void;
}

/** So long that a test would run out of time before it passes. */
const never = 3_600_000;

/** Follows a tenant of a store. */
export type Follow = ReturnType<typeof useFollowers>;

/** Follows stores, and stops when the test is done. */
export function useFollowers() {
  const stopAfterTest = useStops();

  return function follow(
    store: Store,
    tenantId: string,
    options: Partial<FollowOptions> = {},
  ): Follower {
    const controller = new AbortController();
    const { signal } = controller;
    const followed = store.changes.follow({ tenantId, beat: never, signal, ...options });
    const batches = followed[Symbol.asyncIterator]();
    let position = options.after ?? "";
    const stop = () => controller.abort();
    stopAfterTest(stop);
    return {
      step: () => batches.next(),

      async next() {
        const { done, value } = await batches.next();
        if (done) {
          throw new Error("It has ended.");
        }
        position = value.position;
        return value;
      },

      async until(isLast) {
        const changes: Change[] = [];
        while (!changes.some(isLast)) {
          changes.push(...(await this.next()).changes);
        }
        return changes;
      },

      position: () => position,
      stop,
    };
  };
}
