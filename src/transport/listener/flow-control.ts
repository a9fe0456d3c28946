import type { Socket } from "node:net";
import { coalescePerTick } from "../../lib/event-loop.js";
import { createFairQueue } from "./call-scheduler.js";

/**
 * Creates the flow control of each HTTP/2 connection. While too many calls are
 * queued, the server does not read from unauthenticated connections.
 */
export function createFlowControls(): (reader: SocketReader) => FlowControl {
  const throttle = createReadThrottle();
  return (reader) => new FlowControl(throttle, reader);
}

/** Pauses and resumes reading from one HTTP/2 connection. */
export class FlowControl implements Pausable {
  /** Whether received data may be unread. */
  isPaused = false;
  /** Whether a call with a valid key has arrived. */
  isAuthenticated = false;
  /** When reading was last resumed. */
  resumedAt = Number.NEGATIVE_INFINITY;
  private isStarted = false;
  private hasEndedCall = false;
  private exceededConcurrency = false;
  private queuedCalls = 0;

  constructor(
    private readonly throttle: ReadThrottle,
    private readonly reader: SocketReader,
  ) {}

  /** Whether calls have ended, and never more than one was queued at a time. */
  get hasLowConcurrency(): boolean {
    return this.hasEndedCall && !this.exceededConcurrency;
  }

  /** Starts reading, now or when the throttle allows it. */
  start(read?: () => void): void {
    this.isStarted = true;
    this.throttle.add(this, read);
  }

  pause(): void {
    this.isPaused = true;
    this.reader.pauseReading();
  }

  resume(): void {
    this.isPaused = false;
    this.resumedAt = performance.now();
    this.reader.resumeReading();
  }

  /** Counts a queued call until the returned function runs it. */
  trackQueuedCall(run: () => void): () => void {
    // HTTP/1.1 calls are not throttled and must not throttle others.
    if (!this.isStarted) {
      return run;
    }
    this.addQueuedCalls(1);
    return () => {
      this.addQueuedCalls(-1);
      run();
    };
  }

  private addQueuedCalls(change: number): void {
    this.queuedCalls += change;
    this.exceededConcurrency ||= this.queuedCalls > 1;
    if (this.isPaused && change > 0) {
      // Node resumes reading by itself after a delayed write.
      this.reader.pauseReading();
    }
    if (this.isAuthenticated) {
      this.throttle.addAuthenticatedCalls(change);
    } else {
      this.throttle.addUnauthenticatedCalls(change);
    }
  }

  callEnded(): void {
    this.hasEndedCall = true;
  }

  markAuthenticated(): void {
    this.isAuthenticated = true;
    this.throttle.delete(this);
    this.throttle.addUnauthenticatedCalls(-this.queuedCalls);
    this.throttle.addAuthenticatedCalls(this.queuedCalls);
    if (this.isPaused) {
      this.resume();
    }
  }

  close(): void {
    this.throttle.delete(this);
  }
}

interface Pausable {
  /** Connections with low concurrency resume before others. */
  readonly hasLowConcurrency: boolean;
  pause(): void;
  resume(): void;
}

/** Stops reading from unauthenticated connections while too many of their calls are queued. */
interface ReadThrottle {
  /** Adds a connection and starts reading from it, now or later. */
  add(connection: Pausable, start?: () => void): void;
  /** Removes a connection without changing its state. */
  delete(connection: Pausable): void;
  /** Changes the number of queued calls of unauthenticated connections. */
  addUnauthenticatedCalls(change: number): void;
  /** Changes the number of queued calls of authenticated connections. */
  addAuthenticatedCalls(change: number): void;
}

interface PausedEntry {
  readonly connection: Pausable;
  /** Called when reading resumes. */
  readonly onResume: (() => void) | undefined;
}

/** Queued calls at which reading pauses. */
const pauseThreshold = 500;

/** Queued calls below which reading resumes. */
const resumeThreshold = 200;

/** Connections that resume per tick. Each may bring as many calls as it may have streams. */
const maxResumedPerTick = 4;

/** Milliseconds between two connections that resume while authenticated calls keep the server busy. */
const busyPauseMs = 10;

/** Milliseconds between two connections that resume while too many unauthenticated calls are queued. */
const maxPauseMs = 100;

/** Closed connections that may stay in the queue before it is compacted. */
const maxClosedInQueue = 1_000;

/**
 * Creates the throttle. A call that was read takes more than 10 kB of memory,
 * while an unread one waits in the kernel's buffers. Paused connections resume
 * in a fair order.
 */
function createReadThrottle(): ReadThrottle {
  const reading = new Set<Pausable>();
  const paused = new Map<Pausable, PausedEntry>();
  /** The order in which connections resume. Some of them may be closed. */
  const queue = createFairQueue<PausedEntry>();
  let unauthenticatedCalls = 0;
  let authenticatedCalls = 0;
  let resumedAt = 0;

  function pause(connection: Pausable, onResume?: () => void): PausedEntry {
    const entry = { connection, onResume };
    if (paused.size === 0) {
      resumedAt = performance.now();
    }
    connection.pause();
    paused.set(connection, entry);
    if (queue.length > 2 * paused.size + maxClosedInQueue) {
      queue.retain(isPaused);
    }
    scheduleResume();
    return entry;
  }

  const isPaused = (entry: PausedEntry) => paused.get(entry.connection) === entry;

  function pauseAll(): void {
    for (const connection of reading) {
      const entry = pause(connection);
      if (connection.hasLowConcurrency) {
        queue.addNew(entry);
      } else {
        queue.addReturning(entry);
      }
    }
    reading.clear();
  }

  const scheduleResume = coalescePerTick(resumeSome);

  function resumeSome(): void {
    for (let count = countToResume(); count > 0; count--) {
      resumeNext();
    }
    if (queue.length > 0) {
      scheduleResume();
    }
  }

  function countToResume(): number {
    if (unauthenticatedCalls < resumeThreshold && authenticatedCalls < pauseThreshold) {
      return maxResumedPerTick;
    }
    const pauseMs = unauthenticatedCalls < resumeThreshold ? busyPauseMs : maxPauseMs;
    const now = performance.now();
    if (now - resumedAt < pauseMs) {
      return 0;
    }
    resumedAt = now;
    return 1;
  }

  function resumeNext(): void {
    let next = queue.next();
    while (next && !isPaused(next)) {
      next = queue.next();
    }
    if (next) {
      paused.delete(next.connection);
      reading.add(next.connection);
      next.connection.resume();
      next.onResume?.();
    }
  }

  return {
    add(connection, start) {
      if (unauthenticatedCalls < pauseThreshold && authenticatedCalls < pauseThreshold) {
        reading.add(connection);
        start?.();
      } else {
        queue.addNew(pause(connection, start));
      }
    },
    delete(connection) {
      reading.delete(connection);
      paused.delete(connection);
    },
    addUnauthenticatedCalls(change) {
      unauthenticatedCalls += change;
      if (unauthenticatedCalls >= pauseThreshold && reading.size > 0) {
        pauseAll();
      }
    },
    addAuthenticatedCalls(change) {
      authenticatedCalls += change;
    },
  };
}

/** Pauses and resumes reading from a socket, below Node's streams. */
export interface SocketReader {
  pauseReading(): void;
  resumeReading(): void;
}

/** The handle below a socket's stream. */
interface SocketInternals {
  readonly _handle?: {
    readonly writeQueueSize?: number;
    readStop?(): void;
    readStart?(): void;
  } | null;
}

/** How often the write queue is checked before reading resumes, in milliseconds. */
const interval = 50;

export function createSocketReader(socket: Socket & SocketInternals): SocketReader {
  let isStopped = false;

  /** Node stops reading, too, while a client does not read its responses. Reading resumes after it does. */
  function resumeWhenDrained(): void {
    const { _handle: handle } = socket;
    if (isStopped || !handle) {
      return;
    }
    if ((handle.writeQueueSize ?? 0) > 0) {
      setTimeout(resumeWhenDrained, interval).unref();
    } else {
      handle.readStart?.();
    }
  }

  return {
    pauseReading() {
      isStopped = true;
      socket._handle?.readStop?.();
    },
    resumeReading() {
      isStopped = false;
      resumeWhenDrained();
    },
  };
}
