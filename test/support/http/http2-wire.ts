import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect as connectTcp } from "node:net";
import { Duplex } from "node:stream";
import { useCleanup } from "../cleanup.js";

/** A frame of HTTP/2 that a server sent. */
export interface Frame {
  readonly type: string;
  readonly stream: number;
  readonly isLast: boolean;
  readonly payload: Buffer;
}

/** A connection of HTTP/2 that shows the frames which its client does not. */
export interface WireSession {
  readonly session: ClientHttp2Session;
  /** What the server sent on a stream that carries an answer: its headers, data and trailers. */
  responseFrames(stream: ClientHttp2Stream): readonly Frame[];
  /** Resolves when the server has read all that was sent. */
  waitUntilReceived(): Promise<void>;
  /** Ends the connection as a machine does that is switched off. */
  reset(): void;
}

const frameTypes = [
  ...["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY"],
];
const headerSize = 9;
const endStream = 1;

/** Opens connections of HTTP/2, and ends them when the test is done. */
export function useWireSessions() {
  const stopAfterTest = useCleanup();

  return function open(
    { port }: { readonly port: number },
    options: ClientSessionOptions = {},
  ): WireSession {
    const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true });
    const frames: Frame[] = [];
    let rest = Buffer.alloc(0);
    const tapped = new Duplex({
      read() {},
      write: (chunk, _encoding, done) => void socket.write(chunk, done),
      final: (done) => void socket.end(done),
      destroy(error, done) {
        socket.destroy();
        done(error);
      },
    });
    socket.on("data", (chunk) => {
      rest = takeFrames(Buffer.concat([rest, chunk]), frames);
      tapped.push(chunk);
    });
    socket.on("error", () => {});
    socket.on("close", () => tapped.destroy());
    const session = connect(`http://127.0.0.1:${port}`, {
      ...options,
      createConnection: () => tapped,
    });
    session.on("error", () => {});
    stopAfterTest(() => session.destroy());
    return {
      session,
      responseFrames: ({ id }) =>
        frames.filter(({ stream, type }) => stream === id && /^(DATA|HEADERS)$/.test(type)),
      waitUntilReceived: () => new Promise((resolve) => void session.ping(() => resolve())),
      reset: () => void socket.resetAndDestroy(),
    };
  };
}

/** Takes whole frames off the front of what came, and answers with the rest. */
export function takeFrames(bytes: Buffer, frames: Frame[]): Buffer<ArrayBuffer> {
  let at = 0;
  while (bytes.length - at >= headerSize) {
    const end = at + headerSize + bytes.readUIntBE(at, 3);
    if (end > bytes.length) {
      break;
    }
    frames.push({
      type: frameTypes[bytes.readUInt8(at + 3)] ?? "OTHER",
      isLast: (bytes.readUInt8(at + 4) & endStream) !== 0,
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + headerSize, end),
    });
    at = end;
  }
  return Buffer.from(bytes.subarray(at));
}

/** The headers of a call of gRPC. */
export function grpcHeaders(path: string, key: string, more: OutgoingHttpHeaders = {}) {
  return {
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    "svc-api-key": key,
    ...more,
  };
}

/** What came back on a stream of HTTP/2, each part by itself. */
export interface WireResponse {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>> | undefined;
  readonly body: Buffer;
  /** The code that the stream was closed with. */
  readonly code: number | undefined;
}

/** Reads an answer to its end, however it ends. */
export function readResponse(stream: ClientHttp2Stream): Promise<WireResponse> {
  const chunks: Buffer[] = [];
  let headers: WireResponse["headers"] = {};
  let trailers: WireResponse["trailers"];
  stream.on("response", (got) => {
    headers = got;
  });
  stream.on("trailers", (got) => {
    trailers = got;
  });
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("error", () => {});
  return new Promise((resolve) =>
    stream.on("close", () =>
      resolve({ headers, trailers, body: Buffer.concat(chunks), code: stream.rstCode }),
    ),
  );
}

/** The messages in a body of gRPC, none of them compressed. */
export function parseGrpcMessages(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let rest = body; rest.length > 0; ) {
    const end = 5 + rest.readUInt32BE(1);
    messages.push(rest.subarray(5, end));
    rest = rest.subarray(end);
  }
  return messages;
}

/** Sends parts one after the other, each in a frame of its own that has arrived before the next is sent. */
export async function sendParts(
  stream: ClientHttp2Stream,
  { waitUntilReceived }: WireSession,
  parts: readonly Uint8Array[],
): Promise<void> {
  for (const part of parts) {
    stream.write(part);
    await waitUntilReceived();
  }
  stream.end();
}
