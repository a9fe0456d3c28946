/** What two series of measurements say about whether they differ. */
export interface Comparison {
  /** Welch's t: beyond 4.5 the two differ, whatever else they do. */
  readonly t: number;
  /** How far their means are apart. */
  readonly difference: number;
}

/**
 * Compares two series. Of each the slowest tenth is left out: those are
 * interruptions by others, of which a busy machine has any number.
 */
export function compare(one: readonly number[], other: readonly number[]): Comparison {
  const [a, b] = [describe(one), describe(other)];
  const difference = Math.abs(a.mean - b.mean);
  return { t: difference / Math.sqrt(a.variance / a.count + b.variance / b.count), difference };
}

function describe(series: readonly number[]) {
  const kept = [...series].sort((x, y) => x - y).slice(0, Math.ceil(series.length * 0.9));
  const count = kept.length;
  const mean = kept.reduce((sum, x) => sum + x, 0) / count;
  const variance = kept.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (count - 1);
  return { count, mean, variance };
}
