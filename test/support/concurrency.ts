/** Processes the items with a fixed number of workers, until `shouldStop` returns true. */
export async function forEachConcurrently<T>(
  workers: number,
  items: Iterable<T>,
  work: (item: T, worker: number) => Promise<void>,
  shouldStop: () => boolean = () => false,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const runWorker = async (worker: number) => {
    for (let next = iterator.next(); !next.done && !shouldStop(); next = iterator.next()) {
      await work(next.value, worker);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => runWorker(worker)));
}

/** Waits for all promises. If one fails, undoes the others and rethrows its error. */
export async function allOrUndo<T>(
  promises: readonly Promise<T>[],
  undo: (result: T) => unknown,
): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  const succeeded = settled.flatMap((result) =>
    result.status === "fulfilled" ? [result.value] : [],
  );
  const failed = settled.find((result) => result.status === "rejected");
  if (failed) {
    await Promise.all(succeeded.map(undo));
    throw failed.reason;
  }
  return succeeded;
}
