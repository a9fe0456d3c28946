import type { Snapshot } from "./family.js";

/** The type of a text of metrics. */
export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

/** Adds up what several processes tell, each family in its own way. */
export async function addUp(snapshots: readonly Snapshot[]): Promise<Snapshot> {
  return (await (await aggregate(snapshots)).getMetricsAsJSON()) as unknown as Snapshot;
}

/** The sum of what several processes tell, as Prometheus reads it. */
export async function toText(snapshots: readonly Snapshot[]): Promise<string> {
  return (await aggregate(snapshots)).metrics();
}

async function aggregate(snapshots: readonly Snapshot[]) {
  const { AggregatorRegistry } = await import("prom-client");
  return AggregatorRegistry.aggregate(snapshots as Snapshot[]);
}
