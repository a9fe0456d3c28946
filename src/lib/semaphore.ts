/** Runs at most a fixed number of tasks at a time. The others wait in order of arrival. */
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

/** A separate semaphore per key. */
type KeyedSemaphore = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function createKeyedSemaphore(limit: number): KeyedSemaphore {
  const inUse = new Map<string, { readonly semaphore: Semaphore; users: number }>();

  return async (key, work) => {
    const entry = inUse.get(key) ?? { semaphore: createSemaphore(limit), users: 0 };
    inUse.set(key, entry);
    entry.users++;
    try {
      return await entry.semaphore(work);
    } finally {
      entry.users--;
      if (entry.users === 0) {
        inUse.delete(key);
      }
    }
  };
}
