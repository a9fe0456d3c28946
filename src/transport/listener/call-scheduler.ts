import { coalescePerTick } from "../../lib/event-loop.js";
import { createWaitingLine } from "./waiting-queue.js";

/** Whose turn it is among the calls of one connection, or among their bodies. */
export interface CallTurns {
  /** Whether one that counts for so many may be served now. One that may not waits for a later turn. */
  isFree(weight?: number): boolean;
  /** Serves one in a later turn. Answers how many of the connection wait. */
  wait(serve: () => void, weight?: number): number;
  /** Whether so many wait, of all connections, that no more should. */
  isCrowded(): boolean;
}

interface Waiting {
  readonly serve: () => void;
  readonly weight: number;
}

/** How many of a connection are served in the turn of the event loop in which they come. */
const perConnection = 16;

/** How many may wait, of all connections: each takes more than ten thousand bytes. */
const mostWaiting = 24_000;

/** For how many milliseconds those that come in a turn are served before the others have to wait. */
const longestWelcome = 5;

/** How many milliseconds a turn should take at most where some wait. */
const longestTurn = 10;

/** How many of those that have waited are served in a turn: the more, the less they take. */
const fewestServed = 4;
const mostServed = 1_024;

/**
 * The same for a turn in which a connection was opened. Node takes in one with
 * each turn, and a thousand may stand before the door: whoever is behind them
 * waits for as many turns.
 */
const welcomeBesideNewcomer = 1;
const servedBesideNewcomer = 1;

/** A turn in which no more than these come is not told from the next, so that it costs them nothing. */
const untold = 8;

/**
 * Creates what gives each connection its turns. Thousands of calls may arrive
 * at once, on one connection or on a thousand; to serve all of them before
 * anything else would keep everybody waiting. So those that are many, or come
 * late in a long turn, wait, and the connections they came on take turns. Those
 * that are given up while they wait cost next to nothing. Whoever asks for turns
 * is a connection that was opened just now.
 */
export function createTurnsOfAll(clock: () => number = () => performance.now()): () => CallTurns {
  /** What waits of each connection of which something does. */
  const line = createWaitingLine<Waiting[]>();
  /** Those of which something waits since this turn: that they have hung up since is read in the next. */
  let arrived: Waiting[][] = [];
  let crowd = 0;
  let turn = 0;
  let begunAt = Number.POSITIVE_INFINITY;
  let batch = perConnection;
  let come = 0;
  let welcomeUntil = 0;
  /** Whether a connection was opened in this turn. */
  let hasNewcomer = false;

  const setNext = coalescePerTick(begin);

  function begin(): void {
    turn++;
    come = 0;
    const now = clock();
    if (now - begunAt > longestTurn) {
      batch = Math.max(fewestServed, batch >> 1);
    } else if (!hasNewcomer) {
      batch = Math.min(mostServed, batch * 2);
    }
    const most = hasNewcomer ? servedBesideNewcomer : batch;
    hasNewcomer = false;
    for (let count = 0; count < most && line.length > 0; ) {
      count += serveNext();
    }
    for (const waiting of arrived) {
      line.join(waiting);
    }
    arrived = [];
    if (crowd > 0) {
      begunAt = now;
      setNext();
    } else {
      begunAt = Number.POSITIVE_INFINITY;
      batch = perConnection;
    }
  }

  /** Serves the first of the connection whose turn it is. Answers for how many it counts. */
  function serveNext(): number {
    const waiting = line.next() ?? [];
    const first = waiting.shift();
    crowd--;
    if (waiting.length > 0) {
      line.joinAgain(waiting);
    }
    first?.serve();
    return first?.weight ?? 0;
  }

  function welcome(): void {
    welcomeUntil = clock() + (hasNewcomer ? welcomeBesideNewcomer : longestWelcome);
  }

  function noteNewcomer(): void {
    if (!hasNewcomer) {
      hasNewcomer = true;
      welcome();
      setNext();
    }
  }

  /** Notes that one has come. Answers whether the time of those that come is over. */
  function isLate(): boolean {
    come++;
    if (come === untold || (come === 1 && crowd > 0)) {
      welcome();
      setNext();
    }
    return (come > untold || crowd > 0 || hasNewcomer) && clock() > welcomeUntil;
  }

  return () => {
    noteNewcomer();
    const waiting: Waiting[] = [];
    let seenIn = turn;
    let ofConnection = 0;
    return {
      isFree(weight = 1) {
        if (seenIn !== turn) {
          seenIn = turn;
          ofConnection = 0;
        }
        ofConnection += weight;
        const most = Math.min(perConnection, batch);
        return !isLate() && ofConnection <= most && waiting.length === 0;
      },
      wait(serve, weight = 1) {
        setNext();
        if (crowd === 0 && come < untold) {
          welcome();
        }
        crowd++;
        if (waiting.length === 0) {
          arrived.push(waiting);
        }
        return waiting.push({ serve, weight });
      },
      isCrowded: () => crowd >= mostWaiting,
    };
  };
}
