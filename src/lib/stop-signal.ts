/** Resolves on the first stop signal. Later ones, such as from a terminal and npm at once, are ignored. */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    process.on("SIGINT", resolve);
  });
}
