import type { Change, ChangeBatch } from "../../../src/store/port/changes.js";
import type { EventBatch, EventRecord, FollowOptions } from "../../../src/store/port/events.js";
import type { Store } from "../../../src/store/port/store.js";
import { useCleanup } from "../cleanup.js";

/** Reads the change or event feed of a tenant. */
export interface BatchFollower<Batch, Item> {
  /** Resolves with the next batch. */
  next(): Promise<Batch>;
  /** Collects items up to one that matches. */
  until(isLast: (item: Item) => boolean): Promise<Item[]>;
  /** The next result of the iterator, including its end. */
  step(): Promise<IteratorResult<Batch>>;
  /** The position of the last batch. */
  position(): string;
  stop(): void;
}

export type Follower = BatchFollower<ChangeBatch, Change>;
type EventFollower = BatchFollower<EventBatch, EventRecord>;

/** Longer than any test, in milliseconds. */
const never = 3_600_000;

export type Follow = ReturnType<typeof useFollowers>;

/** Follows the changes of stores until the test ends. */
export function useFollowers() {
  const stopAfterTest = useCleanup();

  return function follow(
    store: Store,
    tenantId: string,
    options: Partial<FollowOptions> = {},
  ): Follower {
    const { signal, stop } = createStopSignal(stopAfterTest);
    const batches = store.changes.follow({ tenantId, heartbeat: never, signal, ...options });
    return createFollower(batches, ({ changes }) => changes, stop, options.after);
  };
}

/** Follows the events of stores until the test ends. */
export function useEventFollowers() {
  const stopAfterTest = useCleanup();

  return function follow(
    store: Store,
    tenantId: string,
    options: Partial<FollowOptions> = {},
  ): EventFollower {
    const { signal, stop } = createStopSignal(stopAfterTest);
    const batches = store.events.follow({ tenantId, heartbeat: never, signal, ...options });
    return createFollower(batches, ({ events }) => events, stop, options.after);
  };
}

function createStopSignal(stopAfterTest: (stop: () => void) => void) {
  const controller = new AbortController();
  const stop = () => controller.abort();
  stopAfterTest(stop);
  return { signal: controller.signal, stop };
}

function createFollower<Batch extends { readonly position: string }, Item>(
  feed: AsyncIterable<Batch>,
  getItems: (batch: Batch) => readonly Item[],
  stop: () => void,
  after = "",
): BatchFollower<Batch, Item> {
  const batches = feed[Symbol.asyncIterator]();
  let position = after;
  return {
    step: () => batches.next(),

    async next() {
      const { done, value } = await batches.next();
      if (done) {
        throw new Error("The feed has ended.");
      }
      position = value.position;
      return value;
    },

    async until(isLast) {
      const items: Item[] = [];
      while (!items.some(isLast)) {
        items.push(...getItems(await this.next()));
      }
      return items;
    },

    position: () => position,
    stop,
  };
}
