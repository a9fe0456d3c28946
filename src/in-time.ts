/**
 * Waits for an answer, but no longer than so many milliseconds: then it is
 * what `late` answers or throws. That someone waits keeps no process running,
 * unless it is to.
 */
export function inTime<T, Late>(
  answer: Promise<T>,
  patience: number,
  late: () => Late,
  { keepsRunning = false } = {},
): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, patience);
    if (!keepsRunning) {
      timer.unref();
    }
  });
  return Promise.race([answer, timeUp.then(late)]).finally(() => clearTimeout(timer));
}
