/** A cache of values derived from a versioned record. */
interface GenerationalCache<Value, Version> {
  get(id: string, version: Version): Value | undefined;
  /** Counts a newly computed value and returns whether to add it. */
  shouldAdmit(): boolean;
  /** Stores a value, replaces any other version, and returns the value. */
  add(id: string, version: Version, value: Value, weight: number): Value;
}

/**
 * Creates a cache with two generations of bounded weight. When the young one
 * is full, the old one is dropped; a hit in the old one moves the entry to the
 * young one. This bounds memory without the per-hit bookkeeping of an LRU list.
 *
 * `shouldAdmit` accepts one of `admitEvery` computed values, so entries that
 * are requested once rarely displace frequently requested ones.
 */
export function createGenerationalCache<Value, Version = number>(
  generationWeight: number,
  admitEvery: number,
  counts: CacheCounts = { hits: 0, misses: 0 },
): GenerationalCache<Value, Version> {
  type Entry = { version: Version; value: Value; weight: number };
  let young = new Map<string, Entry>();
  let old = young;
  let weight = 0;
  let computed = 0;

  function store(id: string, entry: Entry): Value {
    if (weight + entry.weight > generationWeight) {
      old = young;
      young = new Map();
      weight = 0;
    }
    young.set(id, entry);
    weight += entry.weight;
    return entry.value;
  }

  return {
    get(id, version) {
      const youngEntry = young.get(id);
      if (youngEntry?.version === version) {
        counts.hits++;
        return youngEntry.value;
      }
      const oldEntry = old.get(id);
      if (oldEntry?.version === version) {
        counts.hits++;
        return store(id, oldEntry);
      }
      counts.misses++;
      return undefined;
    },

    shouldAdmit: () => ++computed % admitEvery === 0,

    add: (id, version, value, weight) => store(id, { version, value, weight }),
  };
}

/** Hits and misses of a cache. */
interface CacheCounts {
  hits: number;
  misses: number;
}

/** The counts of this process by the name of the cache, for metrics. */
export const cacheCounts = new Map<string, CacheCounts>();

/** Caches with the same name share their counts. */
export function cacheCountsOf(name: string): CacheCounts {
  const counts = cacheCounts.get(name) ?? { hits: 0, misses: 0 };
  cacheCounts.set(name, counts);
  return counts;
}

/** Computes a value once per key and never drops it, so use it for few keys only. `lru-cache` would drop some. */
export function memoize<Key, Value extends object | string | number>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const results = new Map<Key, Value>();
  return (key) => {
    let value = results.get(key);
    if (value === undefined) {
      value = compute(key);
      results.set(key, value);
    }
    return value;
  };
}
