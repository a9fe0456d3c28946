/** Waits for a condition that only time brings about. */
export async function until(condition: () => Promise<boolean>, within: number): Promise<void> {
  const deadline = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error("It did not come true in time.");
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
