import { connect, type Socket } from "node:net";
import { frame, frameType, preface } from "./http2-frames.js";
import { type Frame, takeFrames } from "./http2-wire.js";

export interface RawConnection {
  readonly socket: Socket;
  /** All that came back. */
  received(): Buffer;
  /** Resolves with how many milliseconds passed until the server ended it. */
  readonly ended: Promise<number>;
  write(bytes: Uint8Array | string): void;
}

/** Opens a connection, on which whatever is written is written. */
export function openRaw(port: number): RawConnection {
  const started = performance.now();
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  const ended = new Promise<number>((resolve) => {
    socket.on("close", () => resolve(performance.now() - started));
  });
  return {
    socket,
    received: () => Buffer.concat(chunks),
    ended,
    write: (bytes) => void socket.write(bytes),
  };
}

/** Returns true if the server left a connection open for longer than `patience`, and then closes it. */
export async function staysOpen(
  { socket, ended }: RawConnection,
  patience: number,
): Promise<boolean> {
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, patience);
  await ended;
  clearTimeout(late);
  return isLate;
}

/** Opens a connection that begins as one of HTTP/2 does. */
export function openRawHttp2(port: number, ...pairs: [id: number, value: number][]): RawConnection {
  const connection = openRaw(port);
  connection.write(preface(...pairs));
  return connection;
}

/** Calls back with every frame that comes over a connection of HTTP/2. */
export function onFrames({ socket }: RawConnection, take: (frames: readonly Frame[]) => void) {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    const frames: Frame[] = [];
    rest = takeFrames(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), frames);
    take(frames);
  });
}

/** Answers every ping of the server, as any client does. */
export function acknowledgePings(connection: RawConnection): void {
  onFrames(connection, (frames) => {
    for (const { type, isLast: isAnswer, payload } of frames) {
      if (type === "PING" && !isAnswer) {
        connection.write(frame(frameType.ping, 1, 0, payload));
      }
    }
  });
}

/**
 * Waits until the server has looked at all its connections at least twice. It
 * ends a connection that sends much and makes no call, but only when it has
 * seen that between two looks.
 */
export async function waitForConnectionChecks(port: number): Promise<void> {
  const connection = openRawHttp2(port);
  const update = frame(frameType.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1]));
  const updates = Buffer.concat(Array.from({ length: 1_000 }, () => update));
  const timer = setInterval(() => connection.write(updates), 50);
  await connection.ended;
  clearInterval(timer);
}
