import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { retryDelayMs, setReachable } from "./access/reachability.js";

// biome-ignore lint/suspicious/noExplicitAny: pages differ in what they are given.
type AnyPage = ComponentType<any>;
type Load<Component extends AnyPage> = () => Promise<{ readonly default: Component }>;

const loads = new Set<Load<AnyPage>>();

/** A page whose script comes when it is wanted, or when there is time for it. */
export function lazyPage<Component extends AnyPage>(
  load: Load<Component>,
): LazyExoticComponent<Component> {
  loads.add(load);
  return lazy(() => loadWithRetry(load));
}

/** Loads what is not there yet, so that pages can be gone to while the service is away. */
export function preloadPages(): void {
  for (const load of loads) {
    // It is tried again when the page is wanted.
    load().catch(() => undefined);
  }
}

/** Tries until the service is there. Where it is, and has no such script, trying again is of no use. */
async function loadWithRetry<Component extends AnyPage>(load: Load<Component>) {
  for (let isThere = false; ; ) {
    try {
      return await load();
    } catch (reason) {
      if (isThere) {
        throw reason;
      }
    }
    isThere = await fetch(location.pathname, { method: "HEAD" }).then(
      ({ ok }) => ok,
      () => false,
    );
    setReachable(isThere);
    if (!isThere) {
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs));
    }
  }
}
