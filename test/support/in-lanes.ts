/** Works on each item, in a few lanes at once: each takes the next that is left, until it is enough. */
export async function inLanes<T>(
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
