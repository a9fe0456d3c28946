/**
 * Resolves when the present turn of the event loop is over. An immediate, not
 * a microtask: each socket that is read in a turn runs its microtasks before
 * the next one, and what waits for them would share with nobody.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop: for one caller in each turn,
 * first come, first served. Long work waits for it between its parts, so that
 * a turn has one part only, however many such works are under way.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) {
      setImmediate(admitNext);
    }
  });
}

function admitNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) {
    setImmediate(admitNext);
  }
}
