import { readFirst } from "./read-first.js";

const timeIsUp = Symbol("the time is up");

/**
 * Waits for an answer, but no longer than so many milliseconds: then it is
 * what `late` answers or throws. That someone waits keeps no process running,
 * unless it is to.
 */
export async function inTime<T, Late>(
  answer: Promise<T>,
  patience: number,
  late: () => Late,
  { keepsRunning = false } = {},
): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<typeof timeIsUp>((resolve) => {
    timer = setTimeout(
      readFirst(() => resolve(timeIsUp)),
      patience,
    );
    if (!keepsRunning) {
      timer.unref();
    }
  });
  try {
    const first = await Promise.race([answer, end]);
    return first === timeIsUp ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}
