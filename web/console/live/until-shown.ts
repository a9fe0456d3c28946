/** Resolves when the person looks at the page, or the signal is given. */
export function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const settle = () => {
      if (!document.hidden || signal.aborted) {
        document.removeEventListener("visibilitychange", settle);
        signal.removeEventListener("abort", settle);
        resolve();
      }
    };
    document.addEventListener("visibilitychange", settle);
    signal.addEventListener("abort", settle);
  });
}
