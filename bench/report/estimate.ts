/**
 * The result of many rounds. Other load on the machine only adds to a cost, so the
 * lowest value is the best estimate. The median shows how much was added.
 */
export interface Estimate {
  readonly lowest: number;
  readonly median: number;
}

export function estimate(values: readonly number[]): Estimate {
  return { lowest: percentile(values, 0), median: percentile(values, 50) };
}

/** Compares the lowest values with each other, and the medians. */
export function ratio(a: Estimate, b: Estimate): Estimate {
  return combine(a, b, (x, y) => x / y);
}

export function combine(
  a: Estimate,
  b: Estimate,
  operation: (x: number, y: number) => number,
): Estimate {
  return { lowest: operation(a.lowest, b.lowest), median: operation(a.median, b.median) };
}

/** Returns the nearest-rank percentile. `NaN` without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}
