/** Ends a hang, in milliseconds. No test may depend on how soon something happens. */
export const hangTimeout = 120_000;

/** Waits until a condition is true, for as long as `timeout` milliseconds. */
export async function until(
  condition: () => Promise<boolean>,
  timeout = hangTimeout,
): Promise<void> {
  const deadline = performance.now() + timeout;
  for (let pause = 5; !(await condition()); pause = Math.min(2 * pause, 50)) {
    if (performance.now() > deadline) {
      throw new Error("The condition did not come true.");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
