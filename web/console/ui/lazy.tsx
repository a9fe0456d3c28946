import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { callTimeoutMs, retryDelayMs, setOutage } from "./outage.js";

// biome-ignore lint/suspicious/noExplicitAny: pages have different props.
type AnyComponent = ComponentType<any>;
type Load<Component extends AnyComponent> = () => Promise<{ readonly default: Component }>;

const loads = new Set<() => Promise<unknown>>();

/** A script that `preload` loads, unless it is needed earlier. */
export function deferred<Script>(load: () => Promise<Script>): () => Promise<Script> {
  loads.add(load);
  return load;
}

/** A page or a part of it whose script is loaded when it is first shown, or by `preload`. */
export function lazyComponent<Component extends AnyComponent>(
  load: Load<Component>,
): LazyExoticComponent<Component> {
  deferred(load);
  return lazy(() => loadWithRetry(load));
}

/** Loads all scripts, so that the console works while the service is unreachable. */
export function preload(): void {
  for (const load of loads) {
    // Its first use retries.
    load().catch(() => undefined);
  }
}

/** Retries while the service is unreachable. If it is reachable and has no such script, the load fails. */
async function loadWithRetry<Component extends AnyComponent>(load: Load<Component>) {
  for (let isServiceUp = false; ; ) {
    try {
      return await load();
    } catch (reason) {
      if (isServiceUp) {
        throw reason;
      }
    }
    isServiceUp = await fetch(location.pathname, {
      method: "HEAD",
      signal: AbortSignal.timeout(callTimeoutMs),
    }).then(
      ({ ok }) => ok,
      () => false,
    );
    setOutage(isServiceUp ? undefined : "unreachable");
    if (!isServiceUp) {
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs));
    }
  }
}
