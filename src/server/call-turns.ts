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

/**
 * How long a turn should be where some wait. One new connection is taken in
 * with each, so that long ones would keep out whoever comes.
 */
const longestTurn = 10;

/** How many of those that have waited are served in a turn: the more, the less they take. */
const fewestServed = 4;
const mostServed = 1_024;

/** A turn in which no more than these come is not told from the next, so that it costs them nothing. */
const untold = 8;

/**
 * Creates what gives each connection its turns. Thousands of calls may arrive
 * at once, on one connection or on a thousand; to serve all of them before
 * anything else would keep everybody waiting. So those that are many, or come
 * late in a long turn, wait, and the connections they came on take turns. Those
 * that are given up while they wait cost next to nothing.
 */
export function createTurnsOfAll(clock: () => number = () => performance.now()): () => CallTurns {
  /** What waits of each connection of which something does: of those that have had no turn since, and of the others. */
  const fresh: Waiting[][] = [];
  const queue: Waiting[][] = [];
  let picks = 0;
  let crowd = 0;
  let turn = 0;
  let begunAt = Number.POSITIVE_INFINITY;
  let batch = perConnection;
  let come = 0;
  let welcomeUntil = 0;
  let isSet = false;

  function setNext(): void {
    if (!isSet) {
      isSet = true;
      setImmediate(begin);
    }
  }

  function begin(): void {
    isSet = false;
    turn++;
    come = 0;
    const now = clock();
    const isLong = now - begunAt > longestTurn;
    batch = isLong ? Math.max(fewestServed, batch >> 1) : Math.min(mostServed, batch * 2);
    for (let count = 0; count < batch && crowd > 0; ) {
      count += serveNext();
    }
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
    const waiting = pick() ?? [];
    const first = waiting.shift();
    crowd--;
    if (waiting.length > 0) {
      queue.push(waiting);
    }
    first?.serve();
    return first?.weight ?? 0;
  }

  /**
   * Every other turn is that of one that has had none. It is the last that came as often as the
   * first: who comes when a thousand have come at once need not wait for all of them.
   */
  function pick(): Waiting[] | undefined {
    picks++;
    if (fresh.length === 0 || (picks % 2 === 0 && queue.length > 0)) {
      return queue.shift();
    }
    return picks % 4 === 1 ? fresh.pop() : fresh.shift();
  }

  function welcome(): void {
    welcomeUntil = clock() + longestWelcome;
  }

  /** Notes that one has come. Answers whether the time of those that come is over. */
  function isLate(): boolean {
    come++;
    if (come === untold || (come === 1 && crowd > 0)) {
      welcome();
      setNext();
    }
    return (come > untold || crowd > 0) && clock() > welcomeUntil;
  }

  return () => {
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
          fresh.push(waiting);
        }
        return waiting.push({ serve, weight });
      },
      isCrowded: () => crowd >= mostWaiting,
    };
  };
}
