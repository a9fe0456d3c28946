/**
 * Resolves when the present turn of the event loop is over. An immediate, not
 * a microtask: each socket that is read in a turn runs its microtasks before
 * the next one, and what waits for them would share with nobody.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
