import type { Snapshot } from "./family.js";

let registry: Promise<{ getMetricsAsJSON(): Promise<unknown> }> | undefined;

/**
 * What is known of this process: CPU, memory, files, garbage collection. The
 * library is loaded, and begins to watch the last of these, when it is first
 * asked for: a process that nobody scrapes has no use for it.
 */
export async function readProcessMetrics(): Promise<Snapshot> {
  registry ??= createRegistry();
  return (await (await registry).getMetricsAsJSON()) as Snapshot;
}

async function createRegistry() {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const register = new Registry();
  // We watch the event loop ourselves, from the start on, and tell the worst of several workers.
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 60_000 });
  for (const { name } of register.getMetricsAsArray()) {
    if (name.startsWith("nodejs_eventloop_lag")) {
      register.removeSingleMetric(name);
    }
  }
  return register;
}
