import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BodyBudget } from "../http/body-limits.js";
import type { CallScheduler } from "./call-scheduler.js";
import { createSocketReader, type FlowControl, type SocketReader } from "./flow-control.js";

/** An open connection and its counters. */
export interface Connection {
  readonly openedAt: number;
  /** The round of connection cleanup in which it was opened. */
  readonly cleanupRound: number;
  /** Whether a trusted proxy opened it. Many callers may share it then. */
  readonly isTrustedProxy: boolean;
  /** When its last call ended; `undefined` before that. */
  lastUsedAt: number | undefined;
  /** Whether a call with a valid key has arrived. */
  readonly isAuthenticated: boolean;
  /** HTTP/1.1 requests without a complete response. */
  openRequests: number;
  /** All HTTP/1.1 requests so far. */
  requestCount: number;
  /** The HTTP/2 session, if any. */
  session: Http2Session | undefined;
  /** Open HTTP/2 streams, each with its start time. */
  readonly streams: Map<ServerHttp2Stream, number>;
  /** Complete HTTP/2 frames that Node reports: new streams, pings and settings. */
  frames: number;
  /** HTTP/2 frames outside of calls since the last progress. */
  idleFrames: number;
  /** HTTP/2 calls that the client canceled immediately. Reset periodically. */
  abortedCalls: number;
  /** The number of calls and of written parts of streams. */
  progressCount: number;
  /** Schedules new calls, and calls whose bodies are complete. */
  readonly scheduler: CallScheduler;
  readonly bodyScheduler: CallScheduler;
  /** The memory budget that the bodies of all connections share. */
  readonly bodyBudget: BodyBudget;
  /** Has an effect on HTTP/2 only. */
  readonly flow: FlowControl;
  readonly bytesRead: number;
  /** Called when a call with a valid key has arrived. */
  markAuthenticated(): void;
  /** Called when the client is sent data, which it may acknowledge with frames. */
  recordProgress(): void;
  /** Called when the response to an HTTP/1.1 request is complete. */
  readonly onRequestEnd: () => void;
  /** Called once, when the responses to all HTTP/1.1 requests are complete. */
  onIdle: (() => void) | undefined;
  /** Stops reading until the connection is closed. */
  pauseReading(): void;
  /** Closes the connection immediately. */
  drop(): void;
}

/** The property of a socket that holds its connection. */
export const connectionKey = Symbol("connection");

export interface SocketWithConnection {
  [connectionKey]?: Connection;
}

interface ConnectionOptions
  extends Pick<
    Connection,
    "cleanupRound" | "isTrustedProxy" | "scheduler" | "bodyScheduler" | "bodyBudget"
  > {
  readonly createFlowControl: (reader: SocketReader) => FlowControl;
  onAuthenticated(connection: Connection): void;
  /** May be called more than once. */
  onClose(connection: Connection): void;
}

export function createConnection(socket: Socket, options: ConnectionOptions): Connection {
  const { cleanupRound, isTrustedProxy, scheduler, bodyScheduler, bodyBudget } = options;
  const { createFlowControl, onAuthenticated, onClose } = options;
  const reader = createSocketReader(socket);
  const connection: Connection = {
    openedAt: performance.now(),
    cleanupRound,
    isTrustedProxy,
    lastUsedAt: undefined,
    get isAuthenticated() {
      return connection.flow.isAuthenticated;
    },
    openRequests: 0,
    requestCount: 0,
    session: undefined,
    streams: new Map(),
    frames: 0,
    idleFrames: 0,
    abortedCalls: 0,
    progressCount: 0,
    scheduler,
    bodyScheduler,
    bodyBudget,
    flow: createFlowControl(reader),
    get bytesRead() {
      return socket.bytesRead;
    },
    markAuthenticated() {
      if (!connection.flow.isAuthenticated) {
        connection.flow.markAuthenticated();
        onAuthenticated(connection);
      }
    },
    recordProgress() {
      connection.progressCount++;
      connection.idleFrames = 0;
    },
    onRequestEnd() {
      connection.openRequests--;
      connection.lastUsedAt = performance.now();
      if (connection.openRequests === 0 && connection.onIdle) {
        const { onIdle } = connection;
        connection.onIdle = undefined;
        onIdle();
      }
    },
    onIdle: undefined,
    pauseReading: reader.pauseReading,
    drop() {
      connection.session?.destroy();
      socket.destroy();
      // The close event fires later, and new connections may need the slot before that.
      closed();
    },
  };
  function closed(): void {
    connection.flow.close();
    onClose(connection);
  }
  socket.on("close", closed);
  return connection;
}

/** Whether a response is incomplete. */
export function isBusy(connection: Connection): boolean {
  return connection.openRequests > 0 || hasStream(connection, isSending);
}

/** Whether a body, or a stream of messages, is incomplete. */
export function isReceiving(connection: Connection): boolean {
  return hasStream(connection, isStreamReceiving);
}

function isStreamReceiving({ readableEnded }: ServerHttp2Stream): boolean {
  return !readableEnded;
}

function isSending({ writableFinished }: ServerHttp2Stream): boolean {
  return !writableFinished;
}

/** Whether any stream of a connection matches. */
export function hasStream(
  { streams }: Connection,
  matches: (stream: ServerHttp2Stream) => boolean,
): boolean {
  for (const stream of streams.keys()) {
    if (matches(stream)) {
      return true;
    }
  }
  return false;
}
