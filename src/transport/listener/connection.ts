import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { CallTurns } from "./call-scheduler.js";
import { createReading, type Flow, type Reading } from "./flow-control.js";

/** A connection, and what it has to show for itself. */
export interface Connection {
  readonly openedAt: number;
  /** Among which it came: those of one era came before the next look at how many there are. */
  readonly era: number;
  /** Whether it is a trusted proxy's, over which many callers may come. */
  readonly isOfProxy: boolean;
  /** When its last call ended; absent before its first has. */
  usedAt: number | undefined;
  /** Whether a call with a key that works has come over it. */
  readonly isKnown: boolean;
  /** Requests of HTTP/1.1 that are not answered. */
  requests: number;
  /** How many requests of HTTP/1.1 have come. */
  received: number;
  /** Where it is one of HTTP/2. */
  session: Http2Session | undefined;
  /** The streams of HTTP/2 that are open, each with the time at which it was opened. */
  readonly streams: Map<ServerHttp2Stream, number>;
  /** Frames of HTTP/2 that are known to have come whole: those that open calls, and those that serve none. */
  frames: number;
  /** Frames of HTTP/2 that served no call, since a call was last served. */
  idleFrames: number;
  /** Calls of HTTP/2 that their caller gave up as soon as they were made, of late. */
  abandoned: number;
  /** How often it was served something: a call, or a part of a stream. */
  served: number;
  /** Whose turn it is among its calls, and among those whose bodies have come. */
  readonly turns: CallTurns;
  readonly bodyTurns: CallTurns;
  /** What the bodies of all connections share. */
  readonly bodyBudget: BodyBudget;
  /** What comes over it, where it is one of HTTP/2. */
  readonly flow: Flow;
  /** How many bytes have come over it. */
  readonly bytesRead: number;
  /** Notes that a key that works has come over it. */
  noteGoodKey(): void;
  /** Notes that it is given something to read, which its client may acknowledge in frames of its own. */
  noteProgress(): void;
  /** Called when a request of HTTP/1.1 has its answer. */
  readonly requestEnded: () => void;
  /** Called once, when all requests of HTTP/1.1 are answered. */
  onIdle: (() => void) | undefined;
  /** Keeps more of what has come from being read before it is ended. */
  stopReading(): void;
  /** Ends it at once. */
  drop(): void;
}

/** Where a socket keeps what is known of its connection. */
export const connectionKey = Symbol("connection");

/** A socket with what is known of its connection. */
export interface Connected {
  [connectionKey]?: Connection;
}

interface ConnectionOptions
  extends Pick<Connection, "era" | "isOfProxy" | "turns" | "bodyTurns" | "bodyBudget"> {
  readonly createFlow: (reading: Reading) => Flow;
  onGoodKey(connection: Connection): void;
  /** Called once or more when it has ended. */
  onGone(connection: Connection): void;
}

export function createConnection(socket: Socket, options: ConnectionOptions): Connection {
  const { era, isOfProxy, turns, bodyTurns, bodyBudget, createFlow, onGoodKey, onGone } = options;
  const reading = createReading(socket);
  const connection: Connection = {
    openedAt: performance.now(),
    era,
    isOfProxy,
    usedAt: undefined,
    get isKnown() {
      return connection.flow.isKnown;
    },
    requests: 0,
    received: 0,
    session: undefined,
    streams: new Map(),
    frames: 0,
    idleFrames: 0,
    abandoned: 0,
    served: 0,
    turns,
    bodyTurns,
    bodyBudget,
    flow: createFlow(reading),
    get bytesRead() {
      return socket.bytesRead;
    },
    noteGoodKey() {
      if (!connection.flow.isKnown) {
        connection.flow.noteGoodKey();
        onGoodKey(connection);
      }
    },
    noteProgress() {
      connection.served++;
      connection.idleFrames = 0;
    },
    requestEnded() {
      connection.requests--;
      connection.usedAt = performance.now();
      if (connection.requests === 0 && connection.onIdle) {
        const { onIdle } = connection;
        connection.onIdle = undefined;
        onIdle();
      }
    },
    onIdle: undefined,
    stopReading: reading.stopReading,
    drop() {
      connection.session?.destroy();
      socket.destroy();
      // That it is closed is told later, when others may have come.
      forget();
    },
  };
  function forget(): void {
    connection.flow.end();
    onGone(connection);
  }
  socket.on("close", forget);
  return connection;
}

/** Whether somebody waits for an answer that is not all sent. */
export function isBusy(connection: Connection): boolean {
  return connection.requests > 0 || hasStream(connection, isNotAllSent);
}

/** Whether a body, or a stream of messages, is not all there. */
export function isReceiving(connection: Connection): boolean {
  return hasStream(connection, isNotAllReceived);
}

function isNotAllReceived({ readableEnded }: ServerHttp2Stream): boolean {
  return !readableEnded;
}

function isNotAllSent({ writableFinished }: ServerHttp2Stream): boolean {
  return !writableFinished;
}

/** Whether one of the streams of a connection is of a kind. */
export function hasStream(
  { streams }: Connection,
  isOfKind: (stream: ServerHttp2Stream) => boolean,
): boolean {
  for (const stream of streams.keys()) {
    if (isOfKind(stream)) {
      return true;
    }
  }
  return false;
}

/** Keeps count of what bodies hold in memory, all of them together. */
interface BodyBudget {
  /** Notes that a body which held so many bytes now holds others. Answers whether there was room; a body may always shrink. */
  change(before: number, now: number): boolean;
}

/** Bodies of up to so many bytes are not counted: they are most, and even very many of them take little. */
const uncounted = 16 * 1024;

/**
 * Creates a budget of so many bytes. What one body may be has a limit of its
 * own, but those that arrive and never end would add up.
 */
export function createBodyBudget(limit: number): BodyBudget {
  let held = 0;
  return {
    change(before, now) {
      const more = counted(now) - counted(before);
      const others = held - counted(before);
      // One that is alone has its own limit, and need not fear that of all.
      if (more > 0 && others > 0 && held + more > limit) {
        return false;
      }
      held += more;
      return true;
    },
  };
}

function counted(bytes: number): number {
  return bytes > uncounted ? bytes : 0;
}
