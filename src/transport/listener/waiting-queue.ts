/** Those who wait for their turns, of whom some have had one before. */
export interface WaitingLine<T> {
  readonly length: number;
  /** Lets somebody wait for a first turn. */
  join(one: T): void;
  /** Lets somebody wait for another turn. */
  joinAgain(one: T): void;
  /** Whose turn it is. */
  next(): T | undefined;
  /** Sends all others away. */
  keep(isHere: (one: T) => boolean): void;
}

/**
 * Creates a line in which every other turn is that of one who has had none. It
 * is the last that came as often as the first: who comes when a thousand have
 * come at once need not wait for all of them.
 */
export function createWaitingLine<T>(): WaitingLine<T> {
  let fresh: T[] = [];
  let others: T[] = [];
  let turns = 0;

  return {
    get length() {
      return fresh.length + others.length;
    },
    join: (one) => void fresh.push(one),
    joinAgain: (one) => void others.push(one),
    next() {
      turns++;
      if (fresh.length === 0 || (turns % 2 === 0 && others.length > 0)) {
        return others.shift();
      }
      return turns % 4 === 1 ? fresh.pop() : fresh.shift();
    },
    keep(isHere) {
      fresh = fresh.filter(isHere);
      others = others.filter(isHere);
    },
  };
}
