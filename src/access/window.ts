/** How many items of a stream may be under way, or wait to be taken, at a time. */
export interface Window {
  size(): number;
  /** Called when a stream begins and when it has ended. */
  enter(): void;
  leave(): void;
}

interface WindowOptions {
  /** How many all streams may have together. */
  readonly ofAll: number;
  /** How many each may have where there are few of them, and where there are many. */
  readonly most: number;
  readonly least: number;
}

/** Creates a window that streams share, so that many of them need no more memory than a few. */
export function createWindow({ ofAll, most, least }: WindowOptions): Window {
  let streams = 0;
  return {
    size: () => Math.max(least, Math.min(most, Math.floor(ofAll / streams))),
    enter() {
      streams++;
    },
    leave() {
      streams--;
    },
  };
}
