import type { Socket } from "node:net";

/** What keeps more of what has come over a connection from being read, and what does not. */
export interface Reading {
  stopReading(): void;
  goOnReading(): void;
}

/** A socket, as Node itself reads it, past its stream. */
interface Handled {
  readonly _handle?: {
    readonly writeQueueSize?: number;
    readStop?(): void;
    readStart?(): void;
  } | null;
}

/** How often it is looked whether answers were taken before more is read, in milliseconds. */
const interval = 50;

export function createReading(socket: Socket & Handled): Reading {
  let isStopped = false;

  /** Node may have stopped, too: who does not take its answers is not to be given more of them. */
  function readOnceUnclogged(): void {
    const { _handle: handle } = socket;
    if (isStopped || !handle) {
      return;
    }
    if ((handle.writeQueueSize ?? 0) > 0) {
      setTimeout(readOnceUnclogged, interval).unref();
    } else {
      handle.readStart?.();
    }
  }

  return {
    stopReading() {
      isStopped = true;
      socket._handle?.readStop?.();
    },
    goOnReading() {
      isStopped = false;
      readOnceUnclogged();
    },
  };
}
