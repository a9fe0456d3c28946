import { useSyncExternalStore } from "react";

/** Delay between retries while the service is unreachable. */
export const retryDelayMs = 2_000;

let isReachable = true;
const listeners = new Set<() => void>();

/** Records whether the last call reached the service. */
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

export function useIsReachable(): boolean {
  return useSyncExternalStore(listen, () => isReachable);
}

/** Shown while the service is unreachable. */
export function OfflineNotice() {
  const isUp = useIsReachable();
  return (
    <div role="status" className="offline-notice" data-shown={!isUp}>
      {isUp ? null : "The service cannot be reached. Retrying…"}
    </div>
  );
}
