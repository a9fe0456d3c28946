import type { Change, ChangeBatch, FollowOptions } from "../../../src/store/port/changes.js";
import type { EventBatch, EventRecord } from "../../../src/store/port/events.js";
import type { Store } from "../../../src/store/port/store.js";
import { useCleanup } from "../cleanup.js";

/** Someone who follows what happens in a tenant. */
export interface BatchFollower<Batch, Item> {
  /** The next batch, when it comes. */
  next(): Promise<Batch>;
  /** All from here to one, when that comes. */
  until(isLast: (item: Item) => boolean): Promise<Item[]>;
  /** The next answer as the iterator gives it, its end included. */
  step(): Promise<IteratorResult<Batch>>;
  /** The position of the last batch. */
  position(): string;
  stop(): void;
}

export type Follower = BatchFollower<ChangeBatch, Change>;
type EventFollower = BatchFollower<EventBatch, EventRecord>;

/** So long that a test would run out of time before it passes. */
const never = 3_600_000;

/** Follows a tenant of a store. */
export type Follow = ReturnType<typeof useFollowers>;

/** Follows the changes of stores, and stops when the test is done. */
export function useFollowers() {
  const stopAfterTest = useCleanup();

  return function follow(
    store: Store,
    tenantId: string,
    options: Partial<FollowOptions> = {},
  ): Follower {
    const { signal, stop } = stoppable(stopAfterTest);
    const batches = store.changes.follow({ tenantId, heartbeat: never, signal, ...options });
    return createFollower(batches, ({ changes }) => changes, stop, options.after);
  };
}

/** Follows the events of stores, and stops when the test is done. */
export function useEventFollowers() {
  const stopAfterTest = useCleanup();

  return function follow(
    store: Store,
    tenantId: string,
    options: Partial<FollowOptions> = {},
  ): EventFollower {
    const { signal, stop } = stoppable(stopAfterTest);
    const batches = store.events.follow({ tenantId, heartbeat: never, signal, ...options });
    return createFollower(batches, ({ events }) => events, stop, options.after);
  };
}

function stoppable(stopAfterTest: (stop: () => void) => void) {
  const controller = new AbortController();
  const stop = () => controller.abort();
  stopAfterTest(stop);
  return { signal: controller.signal, stop };
}

function createFollower<Batch extends { readonly position: string }, Item>(
  followed: AsyncIterable<Batch>,
  itemsOf: (batch: Batch) => readonly Item[],
  stop: () => void,
  after = "",
): BatchFollower<Batch, Item> {
  const batches = followed[Symbol.asyncIterator]();
  let position = after;
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
      const items: Item[] = [];
      while (!items.some(isLast)) {
        items.push(...itemsOf(await this.next()));
      }
      return items;
    },

    position: () => position,
    stop,
  };
}
