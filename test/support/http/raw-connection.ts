import { connect, type Socket } from "node:net";
import { preface } from "./http2-frames.js";
import { type Frame, takeFrames } from "./http2-wire.js";

export interface RawConnection {
  readonly socket: Socket;
  /** All bytes received so far. */
  received(): Buffer;
  /** Resolves when the connection closes, with its lifetime in milliseconds. */
  readonly ended: Promise<number>;
  write(bytes: Uint8Array | string): void;
}

/** Opens a TCP connection for arbitrary bytes. On Linux every address in 127.0.0.0/8 is local. */
export function openRaw(port: number, localAddress = "127.0.0.1"): RawConnection {
  const started = performance.now();
  const socket = connect({ port, host: "127.0.0.1", localAddress, noDelay: true });
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

/** Returns whether the server left a connection open for `timeout` milliseconds. Then closes it. */
export async function staysOpen(
  { socket, ended }: RawConnection,
  timeout: number,
): Promise<boolean> {
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = true;
    socket.destroy();
  }, timeout);
  await ended;
  clearTimeout(timer);
  return isTimedOut;
}

/** Opens a connection and sends the HTTP/2 preface with the given settings. */
export function openRawHttp2(port: number, ...pairs: [id: number, value: number][]): RawConnection {
  const connection = openRaw(port);
  connection.write(preface(...pairs));
  return connection;
}

/** Calls back with the frames received on an HTTP/2 connection. */
export function onFrames({ socket }: RawConnection, callback: (frames: readonly Frame[]) => void) {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    const frames: Frame[] = [];
    rest = takeFrames(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), frames);
    callback(frames);
  });
}
