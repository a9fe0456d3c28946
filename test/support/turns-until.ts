import { waitForNextTick } from "../../src/lib/event-loop.js";

/** Counts the turns of the event loop until something is done, well or not. */
export async function turnsUntil(done: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const settle = () => {
    isDone = true;
  };
  void done.then(settle, settle);
  while (!isDone) {
    await waitForNextTick();
    turns++;
  }
  return turns;
}
