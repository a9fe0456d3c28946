/** Whether a version, of numbers joined by dots, is another one or newer. */
export function isAtLeast(present: string, wanted: string): boolean {
  const [have, want] = [present, wanted].map((version) => version.split(".").map(Number));
  for (const [place, number] of (want ?? []).entries()) {
    const difference = (have?.[place] ?? 0) - number;
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}
