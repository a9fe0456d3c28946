/** Keeps values by id, each of one version of what it was made from, as long as they are asked for often. */
interface GenerationalCache<Value> {
  get(id: string, version: number): Value | undefined;
  /** Counts a value that was just made, and answers whether it is to be added. */
  shouldAdmit(): boolean;
  /** Keeps a value in place of that of another version, and answers it. */
  add(id: string, version: number, value: Value, weight: number): Value;
}

/**
 * Values are held in two generations, of which each may weigh so much: when
 * the younger one is full the older one is dropped. To take a value from the
 * older one brings it into the younger one. Memory is thus bounded, without
 * any record of when each value was last asked for.
 *
 * Of so many values made only one is taken: soon all that are asked for often
 * are there, and few that are asked for once.
 *
 * What is found and what is not is added to the counts.
 */
export function createGenerationalCache<Value>(
  generationWeight: number,
  madePerTaken: number,
  counts: CacheCounts = { hits: 0, misses: 0 },
): GenerationalCache<Value> {
  type Kept = { version: number; value: Value; weight: number };
  let young = new Map<string, Kept>();
  let old = young;
  let weight = 0;
  let made = 0;

  function keep(id: string, kept: Kept): Value {
    if (weight + kept.weight > generationWeight) {
      old = young;
      young = new Map();
      weight = 0;
    }
    young.set(id, kept);
    weight += kept.weight;
    return kept.value;
  }

  return {
    get(id, version) {
      const kept = young.get(id);
      if (kept?.version === version) {
        counts.hits++;
        return kept.value;
      }
      const older = old.get(id);
      if (older?.version === version) {
        counts.hits++;
        return keep(id, older);
      }
      counts.misses++;
      return undefined;
    },

    shouldAdmit: () => ++made % madePerTaken === 0,

    add: (id, version, value, weight) => keep(id, { version, value, weight }),
  };
}

/** How often something was found in a cache, and how often it was not. */
export interface CacheCounts {
  hits: number;
  misses: number;
}

/** Makes something once for each key, when it is first asked for, and answers the same from then on. The keys must be few. */
export function memoize<Key, Made extends object | string>(
  make: (key: Key) => Made,
): (key: Key) => Made {
  const all = new Map<Key, Made>();
  return (key) => {
    let made = all.get(key);
    if (made === undefined) {
      made = make(key);
      all.set(key, made);
    }
    return made;
  };
}
