import { nextTurn } from "../next-turn.js";

/**
 * Lets the calls that are made in one turn of the event loop share one run of
 * `work`, which starts after them: to each it is as fresh as a run of its own.
 */
export function oncePerTurn(work: () => Promise<void>): () => Promise<void> {
  let sharing: Promise<void> | undefined;
  return () => {
    sharing ??= nextTurn().then(() => {
      sharing = undefined;
      return work();
    });
    return sharing;
  };
}
