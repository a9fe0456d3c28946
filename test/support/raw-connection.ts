import { connect, type Socket } from "node:net";
import { preface } from "./http2-frames.js";

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

/** Waits until the other side has closed a connection, and closes it where that takes too long: whether it did. */
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
