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
 * Creates a queue in which every other item is a new one. New items come from
 * both ends in turn, so that the last of a thousand does not wait for all others.
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
