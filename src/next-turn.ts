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
 * Yields to the event loop between the parts of long work. It resolves for one
 * waiter in each turn, first come, first served, so that a turn has one part of
 * one long work only.
 */
export function yieldTurn(): Promise<void> {
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
