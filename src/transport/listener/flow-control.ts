import type { Socket } from "node:net";
import { coalescePerTick } from "../../lib/event-loop.js";
import { createWaitingLine } from "./waiting-queue.js";

/**
 * Creates what gives each connection its flow. Held back are those of
 * strangers, over which no key that works has come.
 */
export function createFlowsOfAll(): (reading: Reading) => Flow {
  const strangers = createHoldBack();
  return (reading) => new Flow(strangers, reading);
}

/** What comes over a connection of HTTP/2, which may be held back. */
export class Flow implements Holdable {
  /** Whether it is held back, so that what has come may not be read. */
  isHeld = false;
  /** Whether a key that works has come. */
  isKnown = false;
  /** When it was last read again. */
  releasedAt = Number.NEGATIVE_INFINITY;
  private hasBegun = false;
  private hadCall = false;
  private wasGreedy = false;
  private waiting = 0;

  constructor(
    private readonly strangers: HoldBack,
    private readonly reading: Reading,
  ) {}

  /** Whether it has made calls, and never more than one at a time that had to wait. */
  get isModest(): boolean {
    return this.hadCall && !this.wasGreedy;
  }

  /** Begins to read, now or in its turn. */
  begin(read?: () => void): void {
    this.hasBegun = true;
    this.strangers.add(this, read);
  }

  hold(): void {
    this.isHeld = true;
    this.reading.stopReading();
  }

  release(): void {
    this.isHeld = false;
    this.releasedAt = performance.now();
    this.reading.goOnReading();
  }

  /** Counts one among the calls that wait, until what serves it is called. */
  count(serve: () => void): () => void {
    // Those of HTTP/1.1 are not held back, and must not hold others back.
    if (!this.hasBegun) {
      return serve;
    }
    this.noteWaiting(1);
    return () => {
      this.noteWaiting(-1);
      serve();
    };
  }

  private noteWaiting(more: number): void {
    this.waiting += more;
    this.wasGreedy ||= this.waiting > 1;
    if (this.isHeld && more > 0) {
      // Node reads on by itself when it has written what had to wait.
      this.reading.stopReading();
    }
    if (this.isKnown) {
      this.strangers.noteOthersWaiting(more);
    } else {
      this.strangers.noteWaiting(more);
    }
  }

  /** Notes that a call is over. */
  noteCallOver(): void {
    this.hadCall = true;
  }

  /** Notes that a key that works has come. */
  noteGoodKey(): void {
    this.isKnown = true;
    this.strangers.delete(this);
    this.strangers.noteWaiting(-this.waiting);
    this.strangers.noteOthersWaiting(this.waiting);
    if (this.isHeld) {
      this.release();
    }
  }

  end(): void {
    this.strangers.delete(this);
  }
}

/** What comes over a connection, and can be kept from being read. */
interface Holdable {
  /** Whether it asks now and then, one call at a time. It need not wait for those that do not. */
  readonly isModest: boolean;
  hold(): void;
  release(): void;
}

/** Connections of one kind, which are read no further while too many calls that came over them wait. */
interface HoldBack {
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
function createHoldBack(): HoldBack {
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

  const setNext = coalescePerTick(releaseSome);

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
