/** What the clocks may differ by without the machine having slept, in milliseconds. */
const leastSleep = 50;

/**
 * Creates a clock in milliseconds that only runs forward and also counts the
 * time that the machine slept, or was frozen: the monotonic clock of the
 * process may stand still then, and what is old would look fresh. A calendar
 * that is set forward looks like sleep too, which errs on the safe side.
 */
export function createSleeplessClock(
  monotonic: () => number = () => performance.now(),
  calendar: () => number = () => Date.now(),
): () => number {
  let slept = 0;
  let distance = calendar() - monotonic();
  return () => {
    const elapsed = monotonic();
    const present = calendar() - elapsed;
    if (present - distance > leastSleep) {
      slept += present - distance;
    }
    distance = present;
    return elapsed + slept;
  };
}
