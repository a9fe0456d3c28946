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
import { endStream } from "./http2-frames.js";

/** An HTTP/2 frame sent by a server. */
export interface Frame {
  readonly type: string;
  readonly stream: number;
  readonly isLast: boolean;
  readonly payload: Buffer;
}

/** An HTTP/2 client session that records the frames it receives. */
export interface WireSession {
  readonly session: ClientHttp2Session;
  /** The headers, data and trailers that the server sent on a stream. */
  responseFrames(stream: ClientHttp2Stream): readonly Frame[];
  /** Resolves when the server has read all frames sent so far. */
  waitUntilReceived(): Promise<void>;
  /** Resets the TCP connection. */
  reset(): void;
}

const frameTypes = [
  "DATA",
  "HEADERS",
  "PRIORITY",
  "RST_STREAM",
  "SETTINGS",
  "PUSH_PROMISE",
  "PING",
  "GOAWAY",
];
const headerSize = 9;

/** Opens HTTP/2 sessions and closes them after each test. */
export function useWireSessions() {
  const stopAfterTest = useCleanup();

  return function open(
    { port }: { readonly port: number },
    options: ClientSessionOptions = {},
  ): WireSession {
    const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true });
    const frames: Frame[] = [];
    let rest = Buffer.alloc(0);
    const recorder = new Duplex({
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
      recorder.push(chunk);
    });
    socket.on("error", () => {});
    socket.on("close", () => recorder.destroy());
    const session = connect(`http://127.0.0.1:${port}`, {
      ...options,
      createConnection: () => recorder,
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

/** Appends complete frames to `frames` and returns the remaining bytes. */
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

/** The response on an HTTP/2 stream. */
export interface WireResponse {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>> | undefined;
  readonly body: Buffer;
  /** The error code of RST_STREAM. */
  readonly code: number | undefined;
}

/** Reads a response until its stream closes, with or without an error. */
export function readResponse(stream: ClientHttp2Stream): Promise<WireResponse> {
  const chunks: Buffer[] = [];
  let headers: WireResponse["headers"] = {};
  let trailers: WireResponse["trailers"];
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("error", () => {});
  return new Promise((resolve) =>
    stream.on("close", () =>
      resolve({ headers, trailers, body: Buffer.concat(chunks), code: stream.rstCode }),
    ),
  );
}

/** Splits a gRPC body into its messages, which must not be compressed. */
export function parseGrpcMessages(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let rest = body; rest.length > 0; ) {
    const end = 5 + rest.readUInt32BE(1);
    messages.push(rest.subarray(5, end));
    rest = rest.subarray(end);
  }
  return messages;
}

/** Sends each part in its own frame, after the server has received the previous one. */
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
