/** Ends a test that hangs, in milliseconds. No test may depend on how fast something happens. */
export const hangTimeout = 200_000;

/** Waits until a condition is true, or throws after `timeout` milliseconds. */
export async function until(
  condition: () => Promise<boolean>,
  timeout = hangTimeout,
): Promise<void> {
  const deadline = performance.now() + timeout;
  for (let interval = 5; !(await condition()); interval = Math.min(2 * interval, 50)) {
    if (performance.now() > deadline) {
      throw new Error("The condition was not met in time.");
    }
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}
