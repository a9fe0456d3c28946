/**
 * Lets what is to happen when a time is up wait until all that has come by then
 * is read. Timers run before sockets are read: where the process stood still
 * for a while, the time is up for what came in time, too. What waits so is no
 * longer called off with its timer.
 */
export function readFirst(happen: () => void): () => void {
  return () => {
    setImmediate(happen);
  };
}
