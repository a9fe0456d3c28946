/** Whose turn it is among the calls of one connection. */
export interface CallTurns {
  /** Whether a call may be served now. One that may not waits for a later turn. */
  isFree(): boolean;
  /** Serves a call in a later turn. Answers how many wait. */
  wait(serve: () => void): number;
}

/** How many calls of a connection are served in one turn of the event loop. */
const perTurn = 16;

/**
 * Creates the turns of a connection. Thousands of calls may arrive on one at
 * once; to serve all of them before anything else would keep the callers of
 * other connections waiting. Those that are reset while they wait cost nothing.
 */
export function createCallTurns(): CallTurns {
  const waiting: (() => void)[] = [];
  let served = 0;
  let isSet = false;

  function setNext(): void {
    if (!isSet) {
      isSet = true;
      setImmediate(begin);
    }
  }

  function begin(): void {
    isSet = false;
    for (const serve of waiting.splice(0, perTurn)) {
      serve();
    }
    served = waiting.length > 0 ? perTurn : 0;
    if (waiting.length > 0) {
      setNext();
    }
  }

  return {
    isFree() {
      served++;
      // A turn that few calls come in is not told from the next, so that it costs them nothing.
      if (served === perTurn / 2) {
        setNext();
      }
      return served <= perTurn;
    },
    wait(serve) {
      setNext();
      return waiting.push(serve);
    },
  };
}
