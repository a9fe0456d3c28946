/** Lets a few work at a time; the others wait for their turn, first come, first served. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

export function createTurns(limit: number): Turns {
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
