import { useSyncExternalStore } from "react";

/** A dead connection reports no error, so calls need a timeout. */
export const callTimeoutMs = 10_000;

/** Delay between retries while the service is unreachable. */
export const retryDelayMs = 2_000;

/** Why calls fail: no connection, no response, or an error response, such as an overload. */
export type Outage = "unreachable" | "silent" | "unavailable";

let outage: Outage | undefined;
const listeners = new Set<() => void>();

/** Records whether the last call reached the service. */
export function setOutage(now: Outage | undefined): void {
  if (now !== outage) {
    outage = now;
    for (const listener of listeners) {
      listener();
    }
  }
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useOutage(): Outage | undefined {
  return useSyncExternalStore(listen, () => outage);
}

/** Shown while the service is unavailable. */
export function OutageNotice() {
  const current = useOutage();
  return (
    <div role="status" className="outage-notice" data-shown={current !== undefined}>
      {current === "unreachable" && "The service cannot be reached. Retrying…"}
      {current === "silent" && "The service does not respond. Retrying…"}
      {current === "unavailable" && "The service is busy, or its store does not respond. Retrying…"}
    </div>
  );
}
