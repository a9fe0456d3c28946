import { coalescePerTick } from "../../lib/event-loop.js";

/** Schedules the calls of one connection, or the calls whose bodies are complete. */
export interface CallScheduler {
  /** Counts a call. Returns whether it may run in this tick. If not, pass it to `enqueue`. */
  tryAcquire(weight?: number): boolean;
  /** Queues a call for a later tick. Returns the number of queued calls of this connection. */
  enqueue(run: () => void, weight?: number): number;
  /** Whether the queues of all connections together are full. */
  isFull(): boolean;
}

interface QueuedCall {
  readonly run: () => void;
  readonly weight: number;
}

/** Calls that a connection may run in the tick in which they arrive. */
const maxPerConnection = 16;

/** Calls that may be queued in total. Each takes more than 10 kB. */
const maxQueued = 24_000;

/** Milliseconds per tick during which arriving calls run immediately. */
const acceptBudgetMs = 5;

/** Target duration of a tick while calls are queued, in milliseconds. */
const maxTickMs = 10;

/** Bounds of the number of queued calls that run per tick. It adapts to the duration of the last tick. */
const minBatch = 4;
const maxBatch = 1_024;

/**
 * The same budgets for a tick in which a connection was opened. Node accepts one
 * connection per tick, so long ticks would delay every other pending connection.
 */
const acceptBudgetAfterOpenMs = 1;
const batchAfterOpen = 1;

/** Up to this many calls per tick, the scheduler does not track ticks, so that light load costs nothing. */
const fairnessThreshold = 8;

/**
 * Creates the schedulers of all connections. Thousands of calls may arrive at
 * once, on one connection or on many. Calls over the budget of a tick are queued,
 * and run round-robin by connection. A call that is canceled while queued costs
 * almost nothing. Create a scheduler when its connection opens.
 */
export function createCallSchedulers(
  clock: () => number = () => performance.now(),
): () => CallScheduler {
  /** The queues of all connections that have queued calls. */
  const queues = createFairQueue<QueuedCall[]>();
  /** Queues that became non-empty in this tick. A disconnect of their clients is noticed in the next one. */
  let newQueues: QueuedCall[][] = [];
  let queuedCalls = 0;
  let tick = 0;
  let tickStartedAt = Number.POSITIVE_INFINITY;
  let batch = maxPerConnection;
  let arrivals = 0;
  let acceptUntil = 0;
  let openedConnection = false;

  const scheduleTick = coalescePerTick(startTick);

  function startTick(): void {
    tick++;
    arrivals = 0;
    const now = clock();
    if (now - tickStartedAt > maxTickMs) {
      batch = Math.max(minBatch, batch >> 1);
    } else if (!openedConnection) {
      batch = Math.min(maxBatch, batch * 2);
    }
    const limit = openedConnection ? batchAfterOpen : batch;
    openedConnection = false;
    for (let count = 0; count < limit && queues.length > 0; ) {
      count += runNext();
    }
    for (const queue of newQueues) {
      queues.addNew(queue);
    }
    newQueues = [];
    if (queuedCalls > 0) {
      tickStartedAt = now;
      scheduleTick();
    } else {
      tickStartedAt = Number.POSITIVE_INFINITY;
      batch = maxPerConnection;
    }
  }

  /** Runs the first call of the next connection. Returns its weight. */
  function runNext(): number {
    const queue = queues.next() ?? [];
    const call = queue.shift();
    queuedCalls--;
    if (queue.length > 0) {
      queues.addReturning(queue);
    }
    call?.run();
    return call?.weight ?? 0;
  }

  function startAcceptBudget(): void {
    acceptUntil = clock() + (openedConnection ? acceptBudgetAfterOpenMs : acceptBudgetMs);
  }

  function connectionOpened(): void {
    if (!openedConnection) {
      openedConnection = true;
      startAcceptBudget();
      scheduleTick();
    }
  }

  function countArrival(): void {
    arrivals++;
    if (arrivals === fairnessThreshold || (arrivals === 1 && queuedCalls > 0)) {
      startAcceptBudget();
      scheduleTick();
    }
  }

  /** Whether the budget of this tick is used up. */
  function isOverBudget(): boolean {
    return (
      (arrivals > fairnessThreshold || queuedCalls > 0 || openedConnection) && clock() > acceptUntil
    );
  }

  return () => {
    connectionOpened();
    const queue: QueuedCall[] = [];
    let lastTick = tick;
    let weightInTick = 0;
    return {
      tryAcquire(weight = 1) {
        if (lastTick !== tick) {
          lastTick = tick;
          weightInTick = 0;
        }
        weightInTick += weight;
        countArrival();
        const limit = Math.min(maxPerConnection, batch);
        return !isOverBudget() && weightInTick <= limit && queue.length === 0;
      },
      enqueue(run, weight = 1) {
        scheduleTick();
        if (queuedCalls === 0 && arrivals < fairnessThreshold) {
          startAcceptBudget();
        }
        queuedCalls++;
        if (queue.length === 0) {
          newQueues.push(queue);
        }
        return queue.push({ run, weight });
      },
      isFull: () => queuedCalls >= maxQueued,
    };
  };
}

/** A queue that alternates between new and returning items. */
interface FairQueue<T> {
  readonly length: number;
  /** Adds an item that was not in the queue before. */
  addNew(item: T): void;
  /** Adds an item again after it was taken. */
  addReturning(item: T): void;
  /** Takes the next item. */
  next(): T | undefined;
  /** Removes all items that do not match. */
  retain(matches: (item: T) => boolean): void;
}

/**
 * Creates a queue in which every other item is a new one. New items are taken
 * alternately from both ends, so that the last of a thousand does not wait for all others.
 */
export function createFairQueue<T>(): FairQueue<T> {
  let fresh: T[] = [];
  let returning: T[] = [];
  let taken = 0;

  return {
    get length() {
      return fresh.length + returning.length;
    },
    addNew: (item) => void fresh.push(item),
    addReturning: (item) => void returning.push(item),
    next() {
      taken++;
      if (fresh.length === 0 || (taken % 2 === 0 && returning.length > 0)) {
        return returning.shift();
      }
      return taken % 4 === 1 ? fresh.pop() : fresh.shift();
    },
    retain(matches) {
      fresh = fresh.filter(matches);
      returning = returning.filter(matches);
    },
  };
}
