import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Limits } from "../../config/limits.js";
import { afterPendingIo } from "../../lib/event-loop.js";
import { type Connection, hasStream, isBusy, isReceiving } from "./connection.js";

/** How often connections are checked, in milliseconds. */
const interval = 1_000;

/** Checks after which the counters of idle frames and aborted calls are reset. */
const checksPerReset = 10;

/**
 * Closes connections that are idle, stale or too slow, and returns a function that stops the checks. Node
 * itself times out slow HTTP/1.1 requests. A late check is skipped, but no two in a row: if the process was
 * blocked, received data may be unread.
 */
export function closeStaleConnections(
  connections: Iterable<Connection>,
  limits: Pick<Limits, "headerTimeout" | "bodyTimeout" | "idleTimeout">,
): () => void {
  const { headerTimeout, idleTimeout } = limits;
  const isStale = createStaleDetector(limits);
  const isSlowFrame = createSlowFrameDetector(limits);
  let checks = 0;
  let checkedAt = performance.now();
  let isSkipped = false;

  function checkUnlessLate(): void {
    const now = performance.now();
    isSkipped = !isSkipped && now - checkedAt > 1.5 * interval;
    checkedAt = now;
    if (!isSkipped) {
      checkAll(now);
    }
  }

  function checkAll(now: number): void {
    const isReset = ++checks % checksPerReset === 0;
    for (const connection of connections) {
      if (isReset) {
        connection.idleFrames = 0;
        connection.abortedCalls = 0;
      }
      if (mayHaveUnreadData(connection, now)) {
        continue;
      }
      if (hasTimedOut(connection, now) || isBroken(connection, now)) {
        connection.drop();
      } else if (connection.session && isIdle(connection, now)) {
        // Sends GOAWAY and closes the connection.
        connection.session.close();
      }
    }
  }

  function isBroken(connection: Connection, now: number): boolean {
    const { session } = connection;
    return (
      session !== undefined && (isStale(connection, now) || isSlowFrame(connection, session, now))
    );
  }

  function mayHaveUnreadData({ flow }: Connection, now: number): boolean {
    return flow.isPaused || now - flow.resumedAt < interval;
  }

  function hasTimedOut(connection: Connection, now: number): boolean {
    const { session, lastUsedAt, openedAt, openRequests, streams, flow } = connection;
    if (openRequests + streams.size > 0) {
      return false;
    }
    // After the extra interval, Node has sent its own timeout response.
    return lastUsedAt === undefined
      ? now - Math.max(openedAt, flow.resumedAt) > headerTimeout + interval
      : session?.closed === true;
  }

  /** Whether an HTTP/2 connection has been idle for too long. Unauthenticated ones have less time. */
  function isIdle(connection: Connection, now: number): boolean {
    const { lastUsedAt, isAuthenticated } = connection;
    const timeout = isAuthenticated ? idleTimeout : headerTimeout;
    return lastUsedAt !== undefined && now - lastUsedAt > timeout && !isBusy(connection);
  }

  const timer = setInterval(afterPendingIo(checkUnlessLate), interval).unref();
  return () => clearInterval(timer);
}

/** The state of a connection at its last check for slow frames. */
interface SlowState {
  bytesRead: number;
  frames: number;
  /** Received bytes of bodies, if a body was incomplete. */
  bodyBytes: number | undefined;
  /** The value of `bytesRead` at the last confirmed end of a frame. */
  frameEndAt: number;
  /** Since when the last received bytes may be an incomplete frame. */
  uncertainSince: number | undefined;
}

/**
 * Detects HTTP/2 connections that take longer than the header timeout to send a frame. Node reports only
 * complete frames, and some not at all, so if in doubt, the client gets a ping, which it can only
 * acknowledge between frames.
 */
export function createSlowFrameDetector({ headerTimeout }: Pick<Limits, "headerTimeout">) {
  const states = new WeakMap<Connection, SlowState>();

  return (connection: Connection, session: Http2Session, now: number): boolean => {
    const state = states.get(connection) ?? createSlowState();
    states.set(connection, state);
    const mayBeInsideFrame = updateFrameState(connection, session, state);
    if (!mayBeInsideFrame) {
      state.uncertainSince = undefined;
      return false;
    }
    if (state.uncertainSince === undefined) {
      state.uncertainSince = now;
      pingForFrameEnd(connection, session, state);
    }
    return now - state.uncertainSince > headerTimeout;
  };
}

function createSlowState(): SlowState {
  return {
    bytesRead: 0,
    frames: 0,
    bodyBytes: undefined,
    frameEndAt: 0,
    uncertainSince: undefined,
  };
}

/** Updates the state. Returns whether the last received bytes may be an incomplete frame. */
function updateFrameState(
  connection: Connection,
  session: Http2Session,
  state: SlowState,
): boolean {
  const { bytesRead, frames, streams } = connection;
  const hasNewBytes = bytesRead !== state.bytesRead;
  const hasNewFrame = frames !== state.frames;
  state.bytesRead = bytesRead;
  state.frames = frames;
  if (bytesRead === state.frameEndAt) {
    return false;
  }
  if (!hasNewBytes) {
    // With open calls, silence may be inside a body, which has its own timeout.
    return state.uncertainSince !== undefined || streams.size === 0;
  }
  return !hasNewFrame && !updateBodyBytes(connection, session, state);
}

/** Updates the state. Returns whether body bytes arrived. Bodies have their own timeout. */
function updateBodyBytes(connection: Connection, session: Http2Session, state: SlowState): boolean {
  const before = state.bodyBytes;
  state.bodyBytes = isReceiving(connection) ? session.state.effectiveRecvDataLength : undefined;
  return before !== undefined && state.bodyBytes !== undefined && before !== state.bodyBytes;
}

function pingForFrameEnd(connection: Connection, session: Http2Session, state: SlowState): void {
  const onAck = (error: Error | null) => {
    if (!error) {
      state.frameEndAt = connection.bytesRead;
      state.uncertainSince = undefined;
    }
  };
  if (!session.destroyed) {
    session.ping(onAck);
  }
}

/** Bytes that may arrive outside of calls between two checks. Window updates of clients take a few. */
const maxIdleBytes = 64 * 1024;

const ignore = () => {};

/** The state of a connection at its last check for staleness. */
interface StaleState {
  readonly progressCount: number;
  readonly bytesRead: number;
  /** Since when nothing has arrived. */
  readonly silentSince: number;
  /** When the silent client was sent a ping. */
  pingedAt: number | undefined;
  /** Since when the client has unread responses and reads none of them. */
  readonly unreadSince: number | undefined;
  readonly window: number | undefined;
  /** Whether a body was incomplete. Bytes that arrive later may be the rest of it. */
  readonly isReceiving: boolean;
}

/**
 * Detects HTTP/2 clients that have disappeared, do not read their responses, or send a flood of frames outside
 * of calls. After a protocol error, Node stops reading and would not even notice a disconnect.
 */
export function createStaleDetector({ bodyTimeout }: Pick<Limits, "bodyTimeout">) {
  const states = new WeakMap<Connection, StaleState>();

  /** Whether the client has disappeared. A silent client gets a ping and time to acknowledge it. */
  function isDead({ session, streams }: Connection, state: StaleState, now: number): boolean {
    if (streams.size === 0) {
      return false;
    }
    if (state.pingedAt !== undefined) {
      return now - state.pingedAt > bodyTimeout;
    }
    if (now - state.silentSince > bodyTimeout / 2) {
      state.pingedAt = now;
      if (session?.destroyed === false) {
        session.ping(ignore);
      }
    }
    return false;
  }

  return (connection: Connection, now: number): boolean => {
    const before = states.get(connection);
    const state = nextStaleState(connection, before, now);
    states.set(connection, state);
    if (!before) {
      return false;
    }
    return (
      isFrameFlood(before, state) ||
      isDead(connection, state, now) ||
      (state.unreadSince !== undefined && now - state.unreadSince > bodyTimeout)
    );
  };
}

function nextStaleState(
  connection: Connection,
  before: StaleState | undefined,
  now: number,
): StaleState {
  const { progressCount, bytesRead, session } = connection;
  const window = hasStream(connection, isUnread) ? session?.state.remoteWindowSize : undefined;
  const isSilent = before?.bytesRead === bytesRead;
  const isStuck = window !== undefined && before?.window === window;
  return {
    progressCount,
    bytesRead,
    silentSince: isSilent ? before.silentSince : now,
    pingedAt: isSilent ? before.pingedAt : undefined,
    unreadSince: isStuck ? (before?.unreadSince ?? now) : undefined,
    window,
    isReceiving: isReceiving(connection),
  };
}

/** Whether many bytes arrived outside of calls. */
function isFrameFlood(before: StaleState, state: StaleState): boolean {
  return (
    before.progressCount === state.progressCount &&
    state.bytesRead - before.bytesRead > maxIdleBytes &&
    !before.isReceiving &&
    !state.isReceiving
  );
}

/** Whether a response is written completely, but not read completely. */
function isUnread({ writableEnded, writableFinished }: ServerHttp2Stream): boolean {
  return writableEnded && !writableFinished;
}
