/** Works on each item, in a few lanes at once: each takes the next that is left, until it is enough. */
export async function forEachConcurrently<T>(
  lanes: number,
  items: Iterable<T>,
  work: (item: T, lane: number) => Promise<void>,
  isEnough: () => boolean = () => false,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const goAlong = async (lane: number) => {
    for (let next = left.next(); !next.done && !isEnough(); next = left.next()) {
      await work(next.value, lane);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => goAlong(lane)));
}

/** Waits for all that was begun; where some of it fails, undoes what did not, and throws why. */
export async function allOrUndo<T>(
  begun: readonly Promise<T>[],
  undo: (done: T) => unknown,
): Promise<T[]> {
  const settled = await Promise.allSettled(begun);
  const done = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed) {
    await Promise.all(done.map(undo));
    throw failed.reason;
  }
  return done;
}
