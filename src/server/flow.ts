import { createHoldBack, type Holdable, type HoldBack } from "./hold-back.js";
import type { Reading } from "./reading.js";

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
