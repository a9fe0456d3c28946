import { callTimeoutMs, retryDelayMs, setOutage } from "./outage.js";

type Load<Script> = () => Promise<Script>;

const loads = new Set<Load<unknown>>();
let isPreloading = false;

/**
 * Registers a script for `preload`. Returns its loader, which retries while the service is
 * unreachable. If the service is reachable and has no such script, the load fails.
 */
export function createLoader<Script>(load: Load<Script>): Load<Script> {
  loads.add(load);
  if (isPreloading) {
    preloadOne(load);
  }
  return () => loadWithRetry(load);
}

/** Loads all scripts, and those that they register, so that the console works during an outage. */
export function preload(): void {
  isPreloading = true;
  loads.forEach(preloadOne);
}

function preloadOne(load: Load<unknown>): void {
  // Its first use retries.
  load().catch(() => undefined);
}

async function loadWithRetry<Script>(load: Load<Script>): Promise<Script> {
  let isServiceUp = false;
  for (;;) {
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
