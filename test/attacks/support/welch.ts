export interface Comparison {
  /** Welch's t. Above 4.5 the means differ significantly. */
  readonly t: number;
  /** The absolute difference of the means. */
  readonly difference: number;
}

/**
 * Compares the means of two series without the slowest 10 % of each, which are
 * interruptions on a busy machine.
 */
export function compare(first: readonly number[], second: readonly number[]): Comparison {
  const [a, b] = [summarize(first), summarize(second)];
  const difference = Math.abs(a.mean - b.mean);
  return { t: difference / Math.sqrt(a.variance / a.count + b.variance / b.count), difference };
}

function summarize(series: readonly number[]) {
  const samples = [...series].sort((x, y) => x - y).slice(0, Math.ceil(series.length * 0.9));
  const count = samples.length;
  const mean = samples.reduce((sum, x) => sum + x, 0) / count;
  const variance = samples.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (count - 1);
  return { count, mean, variance };
}
