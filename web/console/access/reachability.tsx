import { useSyncExternalStore } from "react";

/** Milliseconds between two tries while the service is away. */
export const pauseWhileAway = 2_000;

let isReached = true;
const listeners = new Set<() => void>();

/** Tells what the last call has shown: whether the service can be reached. */
export function setReached(now: boolean): void {
  if (now !== isReached) {
    isReached = now;
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
export function useReached(): boolean {
  return useSyncExternalStore(listen, () => isReached);
}

/** Says so where the service cannot be reached, and that the page goes on trying. */
export function LostNotice() {
  const reached = useReached();
  return (
    <div role="status" className="lost-notice" data-shown={!reached}>
      {reached ? null : "The service cannot be reached. Trying again…"}
    </div>
  );
}
