import { nextTurn } from "../next-turn.js";

export interface BatcherOptions {
  /** How many keys a load may have. */
  readonly limit?: number;
  /** How long after a load was sent the next one is held back for its answer, in milliseconds. */
  readonly patience?: number;
}

/**
 * Makes a lookup by key of a load by many keys. Lookups that start in one turn
 * of the event loop share one load, and so do those that start while the load
 * before is under way: as many as have come when it is answered, or when that
 * has taken too long. A load holds only lookups that started before it, so
 * each is as fresh as a load of its own; a lone lookup waits for nothing but
 * the end of its turn.
 */
export function createBatcher<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  { limit = 256, patience = 2 }: BatcherOptions = {},
): (key: K) => Promise<V | undefined> {
  let gathering: { readonly keys: Set<K>; readonly found: Promise<ReadonlyMap<K, V>> } | undefined;
  let underWay: { readonly answer: Promise<unknown>; readonly sentAt: number } | undefined;

  function gather() {
    const keys = new Set<K>();
    const batch = { keys, found: ready().then(() => send()) };
    return batch;

    function send() {
      if (gathering === batch) {
        gathering = undefined;
      }
      const answer = load([...keys]);
      const sent = { answer, sentAt: performance.now() };
      underWay = sent;
      return answer.finally(() => {
        if (underWay === sent) {
          underWay = undefined;
        }
      });
    }
  }

  async function ready(): Promise<void> {
    const wait = underWay ? underWay.sentAt + patience - performance.now() : 0;
    if (underWay && wait > 0) {
      await settled(underWay.answer, wait);
    }
    // Whoever was answered by it may look up the next at once.
    await nextTurn();
  }

  return async (key) => {
    if (!gathering || gathering.keys.size >= limit) {
      gathering = gather();
    }
    gathering.keys.add(key);
    return (await gathering.found).get(key);
  };
}

/** Resolves when a promise is settled, or after a number of milliseconds. */
function settled(promise: Promise<unknown>, longest: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, longest);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    promise.then(end, end);
  });
}
