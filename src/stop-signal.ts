/** The first signal to stop. Those that follow, as from a terminal and npm at once, change nothing. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    process.on("SIGINT", resolve);
  });
}
