import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

interface PollOptions<C> {
  /** The contents that are in use. */
  readonly current: C;
  /** Reads the contents again. */
  read(): Promise<C>;
  isSame(one: C, other: C): boolean;
  /** Puts changed contents in use, or throws if they are not valid. */
  apply(changed: C): void | Promise<void>;
  /** Called once per problem. The contents in use stay. */
  onProblem(problem: string): void;
}

/**
 * How often files are read, in milliseconds. They are polled: tools that renew
 * files replace them, their folders or links, and a file watcher loses track of them.
 */
const interval = 1_000;

/** Applies the contents of files whenever they change. Returns a function that stops this. */
export function pollForChanges<C>({
  current,
  read,
  isSame,
  apply,
  onProblem,
}: PollOptions<C>): () => void {
  let inUse = current;
  let last = current;
  let lastProblem: string | undefined;
  const stopping = new AbortController();

  async function poll({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      await delay(interval, undefined, { ref: false, signal }).catch(() => {});
      if (!signal.aborted) {
        await check();
      }
    }
  }

  async function check(): Promise<void> {
    try {
      const found = await read();
      // Read twice, because a file may be half written.
      const isComplete = isSame(found, last);
      last = found;
      if (isComplete && !isSame(found, inUse)) {
        await apply(found);
        inUse = found;
      }
      lastProblem = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastProblem) {
        lastProblem = message;
        onProblem(message);
      }
    }
  }

  poll(stopping);
  return () => stopping.abort();
}

/** Polls one file. Returns a function that stops this. */
export function pollFile(
  { path, content }: { readonly path: string; readonly content: Buffer },
  options: Pick<PollOptions<Buffer>, "apply" | "onProblem">,
): () => void {
  return pollForChanges({
    current: content,
    read: () => readFile(path),
    isSame: (one, other) => one.equals(other),
    ...options,
  });
}
