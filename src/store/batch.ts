import { nextTurn } from "../next-turn.js";

/**
 * Makes a lookup by key of a load by many keys. Lookups that start in one turn
 * of the event loop share one load, at most `limit` keys large. A load holds
 * only lookups that started before it, so each is as fresh as a load of its
 * own; a lone lookup waits for nothing but the end of its turn.
 */
export function createBatcher<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  limit = 256,
): (key: K) => Promise<V | undefined> {
  let gathering: { readonly keys: Set<K>; readonly found: Promise<ReadonlyMap<K, V>> } | undefined;

  function gather() {
    const keys = new Set<K>();
    const found = nextTurn().then(() => {
      gathering = undefined;
      return load([...keys]);
    });
    return { keys, found };
  }

  return async (key) => {
    if (!gathering || gathering.keys.size >= limit) {
      gathering = gather();
    }
    gathering.keys.add(key);
    return (await gathering.found).get(key);
  };
}
