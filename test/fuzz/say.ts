import { type RawConnection, staysOpen } from "../support/http/raw-connection.js";

/** How many connections say something at a time. */
export const connections = 24;

/** Ends a wait for an answer or for the end of a connection, in milliseconds. Longer than any timeout of the server. */
export const fuzzTimeout = 180_000;

/** How long the server may think before its caller hangs up, in milliseconds. */
const pause = 40;

interface SayOptions {
  /** Called with what comes back, and with the timer that hangs up. */
  hear(chunk: Buffer, hangUp: NodeJS.Timeout): void;
  readonly pause?: number;
}

/** Sends bytes, and waits until the connection is closed. Answers whether that took too long. */
export async function say(
  connection: RawConnection,
  bytes: Uint8Array,
  { hear, pause: time = pause }: SayOptions,
): Promise<boolean> {
  const { socket, write } = connection;
  const hangUp = setTimeout(() => socket.end(), time);
  socket.on("data", (chunk) => hear(chunk, hangUp));
  write(bytes);
  const isLate = await staysOpen(connection, fuzzTimeout);
  clearTimeout(hangUp);
  return isLate;
}
