import { useSyncExternalStore } from "react";

/** Milliseconds between two tries while the service is away. */
export const retryDelayMs = 2_000;

let isReachable = true;
const listeners = new Set<() => void>();

/** Tells what the last call has shown: whether the service can be reached. */
export function setReachable(now: boolean): void {
  if (now !== isReachable) {
    isReachable = now;
    for (const listener of listeners) {
      listener();
    }
  }
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the service can be reached. */
export function useIsReachable(): boolean {
  return useSyncExternalStore(listen, () => isReachable);
}

/** Says so where the service cannot be reached, and that the page goes on trying. */
export function OfflineNotice() {
  const reached = useIsReachable();
  return (
    <div role="status" className="lost-notice" data-shown={!reached}>
      {reached ? null : "The service cannot be reached. Trying again…"}
    </div>
  );
}
