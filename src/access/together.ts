import { nextTurn } from "../next-turn.js";

/**
 * Does what is asked for in one turn of the event loop together, after it: to
 * each who asks it is as fresh as if it was done for them alone. The answers
 * are at the places of the items.
 */
export function together<T, R>(
  work: (items: readonly T[]) => Promise<readonly R[]>,
): (item: T) => Promise<R> {
  let gathered: T[] = [];
  let answers: Promise<readonly R[]> | undefined;

  return async (item) => {
    const at = gathered.push(item) - 1;
    answers ??= nextTurn().then(() => {
      const items = gathered;
      gathered = [];
      answers = undefined;
      return work(items);
    });
    return (await answers)[at] as R;
  };
}
