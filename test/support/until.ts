/** Only ends a hang, in milliseconds: for whatever a busy machine may need more than a minute for. */
export const hangTimeout = 120_000;

/** Ends a hang. No test may depend on how soon a condition comes true. */
const shortestCeiling = 60_000;

/** Waits until a condition is true. A longer ceiling than a minute may be given. */
export async function until(
  condition: () => Promise<boolean>,
  ceiling = shortestCeiling,
): Promise<void> {
  const deadline = performance.now() + Math.max(ceiling, shortestCeiling);
  for (let pause = 5; !(await condition()); pause = Math.min(2 * pause, 50)) {
    if (performance.now() > deadline) {
      throw new Error("The condition did not come true.");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
