/** Longer names are not compared, because the cost grows with the square of the length. */
const maxLength = 60;

/** The candidate that a mistyped name probably means: about a third of its characters differ at most, rounded up, and not all. */
export function nearestOf(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > maxLength) {
    return undefined;
  }
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate) }))
    .filter(
      ({ candidate: { length }, distance }) =>
        distance <= Math.ceil(length / 3) && distance < length,
    )
    .sort((one, other) => one.distance - other.distance);
  return ranked[0]?.candidate;
}

/** The number of characters to insert, remove, replace or swap with the next one. */
export function editDistance(one: string, other: string): number {
  let previous: number[] = [];
  let current = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      next[j] = Math.min(
        (current[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (current[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (previous[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    previous = current;
    current = next;
  }
  return current[other.length] ?? 0;
}
