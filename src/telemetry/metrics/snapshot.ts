import { AggregatorRegistry, type Registry } from "prom-client";

/** All metrics of a process at one moment. */
export type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Combines the snapshots of several processes by each metric's aggregator. */
export function aggregateSnapshots(snapshots: readonly Snapshot[]): Promise<Snapshot> {
  return AggregatorRegistry.aggregate([...snapshots]).getMetricsAsJSON();
}

/** Combines snapshots and formats them as Prometheus text. */
export function formatMetrics(snapshots: readonly Snapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics();
}
