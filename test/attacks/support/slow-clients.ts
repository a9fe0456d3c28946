import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  preface,
  request,
} from "../../support/http/http2-frames.js";
import { openRaw, openRawHttp2, type RawConnection } from "../../support/http/raw-connection.js";
import { until } from "../../support/until.js";
import { openRawTls } from "./raw-tls.js";

/** A client that sends slowly until it is disconnected. */
export interface SlowClient {
  isOpen(): boolean;
  disconnect(): void;
  /** Resolves when the server or the client disconnects. */
  readonly disconnected: Promise<Disconnection>;
}

interface Disconnection {
  /** Milliseconds since the client connected. */
  readonly after: number;
  /** The gRPC status if any, otherwise the HTTP status. Empty without a response. */
  readonly status: string;
}

interface Target {
  readonly port: number;
  readonly url: string;
  readonly firstKey: string;
}

const interval = 100;

/** Writes small parts at a fixed interval. */
function drip(connection: RawConnection, next: () => string | Uint8Array): SlowClient {
  const { socket, write, ended, received } = connection;
  const timer = setInterval(() => write(next()), interval);
  return {
    isOpen: () => !socket.destroyed,
    disconnect: () => void socket.destroy(),
    disconnected: ended.then((after) => {
      clearInterval(timer);
      const [, status = ""] = /^HTTP\/1.1 (\d+)/.exec(received().toString("latin1")) ?? [];
      return { after, status };
    }),
  };
}

function dripBytes(connection: RawConnection, bytes: Buffer): SlowClient {
  let at = 0;
  return drip(connection, () => bytes.subarray(at, ++at));
}

async function completeHttp1Call(connection: RawConnection): Promise<RawConnection> {
  connection.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(async () => connection.received().includes("\r\n\r\n"));
  return connection;
}

async function completeHttp2Call(connection: RawConnection, key: string): Promise<RawConnection> {
  const fields = request("/applications/key", { "svc-api-key": key });
  connection.write(frame(frameType.headers, endHeaders | endStream, 1, fields));
  // More bytes than the server settings: a response.
  await until(async () => connection.received().length > 100);
  return connection;
}

function openHttp2Tls({ port }: Target): RawConnection {
  const connection = openRawTls(port, "h2");
  connection.write(preface());
  return connection;
}

/** Writes bytes and returns the connection. */
function withFirstBytes(connection: RawConnection, bytes: string | Uint8Array): RawConnection {
  connection.write(bytes);
  return connection;
}

export const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const watchEventsPath = rpcPath(EventService.method.watchEvents);

// Too long to complete during a test.
const longValue = "a".repeat(10_000);
const headersFrame = frame(
  frameType.headers,
  endHeaders | endStream,
  5,
  request("/", { a: longValue }),
);
const http1Headers = Buffer.from(`GET / HTTP/1.1\r\nhost: a\r\nx-a: ${longValue}`);

/** Clients that send headers slowly. The second target uses TLS. */
export const slowHeaders: Readonly<
  Record<string, (clear: Target, secure: Target) => SlowClient | Promise<SlowClient>>
> = {
  "sends nothing": ({ port }) => drip(openRaw(port), () => ""),
  "byte by byte": ({ port }) => dripBytes(openRaw(port), http1Headers),
  "byte by byte, over TLS": (_, { port }) => dripBytes(openRawTls(port), http1Headers),
  "header by header": ({ port }) =>
    drip(withFirstBytes(openRaw(port), "GET / HTTP/1.1\r\n"), () => "x-a: b\r\n"),
  "byte by byte, after a call": async ({ port }) =>
    dripBytes(await completeHttp1Call(openRaw(port)), http1Headers),
  "over HTTP/2, without END_HEADERS": ({ port }) =>
    drip(
      withFirstBytes(openRawHttp2(port), frame(frameType.headers, 0, 1, request("/"))),
      () => "",
    ),
  "over HTTP/2": ({ port }) => dripBytes(openRawHttp2(port), headersFrame),
  "over HTTP/2 and TLS": (_, secure) => dripBytes(openHttp2Tls(secure), headersFrame),
  "over HTTP/2, after a call": async ({ port, firstKey }) =>
    dripBytes(await completeHttp2Call(openRawHttp2(port), firstKey), headersFrame),
  "over HTTP/2 and TLS, after a call": async (_, secure) =>
    dripBytes(await completeHttp2Call(openHttp2Tls(secure), secure.firstKey), headersFrame),
  "over HTTP/2, after a call, and then stops": async ({ port, firstKey }) => {
    const connection = await completeHttp2Call(openRawHttp2(port), firstKey);
    return drip(withFirstBytes(connection, headersFrame.subarray(0, 100)), () => "");
  },
};

/** Sends a body byte by byte over HTTP/1.1. */
export function slowBodyHttp1({ port, firstKey }: Target): SlowClient {
  const connection = withFirstBytes(
    openRaw(port),
    `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${firstKey}\r\n` +
      "content-type: application/json\r\ncontent-length: 100000\r\n\r\n",
  );
  return drip(connection, () => " ");
}

/**
 * Sends slow bodies until one gets a response. A byte that arrives after the server
 * has closed resets the connection and loses the response.
 */
export async function sendSlowBodyUntilResponse(target: Target): Promise<Disconnection> {
  for (;;) {
    const disconnection = await slowBodyHttp1(target).disconnected;
    if (disconnection.status !== "") {
      return disconnection;
    }
  }
}

/** Sends a body byte by byte over HTTP/2. */
export function slowBodyHttp2(
  { url, firstKey }: Target,
  path: string,
  headers: OutgoingHttpHeaders,
): SlowClient {
  const session = connectHttp2(url);
  session.on("error", () => {});
  const startedAt = performance.now();
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "svc-api-key": firstKey,
    te: "trailers",
    ...headers,
  });
  let status = "";
  const readStatus = (fields: Readonly<Record<string, unknown>>) => {
    status = String(fields["grpc-status"] ?? fields[":status"] ?? status);
  };
  stream.on("response", readStatus);
  stream.on("trailers", readStatus);
  stream.on("error", () => {});
  stream.resume();
  // The start of the prefix of a large message.
  stream.write(Buffer.from([0, 0, 1, 0]));
  const timer = setInterval(() => stream.write(Buffer.alloc(1)), interval);
  return {
    isOpen: () => !stream.closed,
    disconnect: () => session.destroy(),
    disconnected: new Promise((resolve) => {
      stream.on("close", () => {
        clearInterval(timer);
        session.destroy();
        resolve({ after: performance.now() - startedAt, status });
      });
    }),
  };
}

/** Requests with a body over HTTP/2. */
export const slowBodies: readonly [what: string, path: string, headers: OutgoingHttpHeaders][] = [
  ["REST", "/applications", { "content-type": "application/json" }],
  ["Connect", createApplicationPath, { "content-type": "application/json" }],
  [
    "Connect, compressed",
    createApplicationPath,
    { "content-type": "application/json", "content-encoding": "gzip" },
  ],
  ["gRPC", createApplicationPath, { "content-type": "application/grpc" }],
  [
    "gRPC, compressed",
    createApplicationPath,
    { "content-type": "application/grpc", "grpc-encoding": "gzip" },
  ],
  ["gRPC in a server stream", watchEventsPath, { "content-type": "application/grpc" }],
  ["Connect in a server stream", watchEventsPath, { "content-type": "application/connect+proto" }],
  ["gRPC in a bidirectional stream", streamCheckAccessPath, { "content-type": "application/grpc" }],
  [
    "gRPC in a bidirectional stream, compressed",
    streamCheckAccessPath,
    { "content-type": "application/grpc", "grpc-encoding": "gzip" },
  ],
  [
    "Connect in a bidirectional stream",
    streamCheckAccessPath,
    { "content-type": "application/connect+proto" },
  ],
];
