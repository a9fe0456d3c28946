import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { callTimeoutMs, retryDelayMs, setOutage } from "./sign-in/connection.js";

// biome-ignore lint/suspicious/noExplicitAny: pages have different props.
type AnyPage = ComponentType<any>;
type Load<Component extends AnyPage> = () => Promise<{ readonly default: Component }>;

const loads = new Set<Load<AnyPage>>();

/** A page whose script is loaded on the first visit, or by `preloadPages`. */
export function lazyPage<Component extends AnyPage>(
  load: Load<Component>,
): LazyExoticComponent<Component> {
  loads.add(load);
  return lazy(() => loadWithRetry(load));
}

/** Loads all pages, so that navigation works while the service is unreachable. */
export function preloadPages(): void {
  for (const load of loads) {
    // The visit of the page retries it.
    load().catch(() => undefined);
  }
}

/** Retries while the service is unreachable. If it is reachable and has no such script, the load fails. */
async function loadWithRetry<Component extends AnyPage>(load: Load<Component>) {
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
