/** Lets a few work at a time; the others wait for their turn, first come, first served. */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>;

export function createSemaphore(limit: number): Semaphore {
  const waiting: (() => void)[] = [];
  let free = limit;

  return async (work) => {
    if (free > 0) {
      free--;
    } else {
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) {
        next();
      } else {
        free++;
      }
    }
  };
}

/** The same, for each key by itself. */
export type KeyedSemaphore = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function createKeyedSemaphore(limit: number): KeyedSemaphore {
  const inUse = new Map<string, { readonly turns: Semaphore; users: number }>();

  return async (key, work) => {
    const entry = inUse.get(key) ?? { turns: createSemaphore(limit), users: 0 };
    inUse.set(key, entry);
    entry.users++;
    try {
      return await entry.turns(work);
    } finally {
      entry.users--;
      if (entry.users === 0) {
        inUse.delete(key);
      }
    }
  };
}
