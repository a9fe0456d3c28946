import { oncePerTurn } from "../once-per-turn.js";
import { createWaitingLine } from "./waiting-line.js";

/** What comes over a connection, and can be kept from being read. */
export interface Holdable {
  /** Whether it asks now and then, one call at a time. It need not wait for those that do not. */
  readonly isModest: boolean;
  hold(): void;
  release(): void;
}

/** Connections of one kind, which are read no further while too many calls that came over them wait. */
export interface HoldBack {
  /** Takes one in, and begins to read it, now or in its turn. */
  add(one: Holdable, begin?: () => void): void;
  /** Forgets one, and leaves it as it is. */
  delete(one: Holdable): void;
  /** Notes that so many more calls wait, or fewer. */
  noteWaiting(more: number): void;
  /** The same for calls that came over connections of another kind. */
  noteOthersWaiting(more: number): void;
}

/** One that is held back, and what is to be done when it is read again. */
interface Held {
  readonly one: Holdable;
  readonly goOn: (() => void) | undefined;
}

/** How many calls wait where no more are read, and how many where some are read again. */
const many = 500;
const few = 200;

/** How many connections are read again in a turn of the event loop: each may bring as many calls as it may have streams. */
const mostReleased = 4;

/** How many milliseconds lie between two that are read again where others keep the server busy, and where too many wait still. */
const pauseBesideOthers = 10;
const longestPause = 100;

/** How many that are gone may stand in the line before it is cleared of them. */
const mostGone = 1_000;

/**
 * Creates what keeps calls from being read that could not be served soon. One
 * that is read takes more than ten thousand bytes; one that is not waits in the
 * buffers of the system. Those that are held back are read again in turn.
 */
export function createHoldBack(): HoldBack {
  const read = new Set<Holdable>();
  const held = new Map<Holdable, Held>();
  /** In which order they are read again. Some in it may be gone. */
  const line = createWaitingLine<Held>();
  let waiting = 0;
  let othersWaiting = 0;
  let releasedAt = 0;

  function hold(one: Holdable, goOn?: () => void): Held {
    const entry = { one, goOn };
    if (held.size === 0) {
      releasedAt = performance.now();
    }
    one.hold();
    held.set(one, entry);
    if (line.length > 2 * held.size + mostGone) {
      line.keep(isHeld);
    }
    setNext();
    return entry;
  }

  const isHeld = (entry: Held) => held.get(entry.one) === entry;

  function holdAll(): void {
    for (const one of read) {
      const entry = hold(one);
      if (one.isModest) {
        line.join(entry);
      } else {
        line.joinAgain(entry);
      }
    }
    read.clear();
  }

  const setNext = oncePerTurn(releaseSome);

  function releaseSome(): void {
    for (let count = mayRelease(); count > 0; count--) {
      releaseNext();
    }
    if (line.length > 0) {
      setNext();
    }
  }

  function mayRelease(): number {
    if (waiting < few && othersWaiting < many) {
      return mostReleased;
    }
    const pause = waiting < few ? pauseBesideOthers : longestPause;
    const now = performance.now();
    if (now - releasedAt < pause) {
      return 0;
    }
    releasedAt = now;
    return 1;
  }

  function releaseNext(): void {
    let next = line.next();
    while (next && !isHeld(next)) {
      next = line.next();
    }
    if (next) {
      held.delete(next.one);
      read.add(next.one);
      next.one.release();
      next.goOn?.();
    }
  }

  return {
    add(one, begin) {
      if (waiting < many && othersWaiting < many) {
        read.add(one);
        begin?.();
      } else {
        line.join(hold(one, begin));
      }
    },
    delete(one) {
      read.delete(one);
      held.delete(one);
    },
    noteWaiting(more) {
      waiting += more;
      if (waiting >= many && read.size > 0) {
        holdAll();
      }
    },
    noteOthersWaiting(more) {
      othersWaiting += more;
    },
  };
}
