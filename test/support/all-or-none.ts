/** Waits for all that was begun; where some of it fails, undoes what did not, and throws why. */
export async function allOrNone<T>(
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
