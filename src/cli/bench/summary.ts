/** What a run has come to. */
export interface Summary {
  readonly calls: number;
  readonly seconds: number;
  readonly calls_per_second: number;
  readonly latency_ms: Readonly<Record<"p50" | "p95" | "p99" | "max", number>>;
  /** How many calls were refused or got lost, by the word of the error. */
  readonly errors: Readonly<Record<string, number>>;
}

export function summarize(
  latencies: readonly number[],
  errors: ReadonlyMap<string, number>,
  elapsed: number,
): Summary {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return {
    calls: sorted.length,
    seconds: round(elapsed / 1_000),
    calls_per_second: Math.round((sorted.length / elapsed) * 1_000),
    latency_ms: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) },
    errors: Object.fromEntries(errors),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
