import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
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

/** A caller that sends slowly, for as long as it is let. */
export interface SlowClient {
  isOpen(): boolean;
  hangUp(): void;
  /** Resolves when the server has cut it off, or it hangs up. */
  readonly over: Promise<CutOff>;
}

interface CutOff {
  /** For how many milliseconds it was let, since it connected. */
  readonly after: number;
  /** What it was answered: the status of HTTP, or of gRPC where there is one. Empty where there was no answer. */
  readonly answer: string;
}

/** A service, and its port. */
interface Target {
  readonly port: number;
  readonly url: string;
  readonly firstKey: string;
}

const pace = 100;

/** Goes on to write something small. */
function drip(connection: RawConnection, next: () => string | Uint8Array): SlowClient {
  const { socket, write, ended, received } = connection;
  const timer = setInterval(() => write(next()), pace);
  return {
    isOpen: () => !socket.destroyed,
    hangUp: () => void socket.destroy(),
    over: ended.then((after) => {
      clearInterval(timer);
      const [, answer = ""] = /^HTTP\/1.1 (\d+)/.exec(received().toString("latin1")) ?? [];
      return { after, answer };
    }),
  };
}

function dripBytes(connection: RawConnection, bytes: Buffer): SlowClient {
  let at = 0;
  return drip(connection, () => bytes.subarray(at, ++at));
}

async function callFirstHttp1(connection: RawConnection): Promise<RawConnection> {
  connection.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(async () => connection.received().includes("\r\n\r\n"));
  return connection;
}

async function callFirst(connection: RawConnection, key: string): Promise<RawConnection> {
  const fields = request("/applications/key", { "svc-api-key": key });
  connection.write(frame(frameType.headers, endHeaders | endStream, 1, fields));
  // More than the settings of the server: an answer.
  await until(async () => connection.received().length > 100);
  return connection;
}

/** Opens a stream that stays, and to which more could be sent. */
async function streamFirst(
  connection: RawConnection,
  key: string,
  path: string,
): Promise<RawConnection> {
  await callFirst(connection, key);
  const headers = { "svc-api-key": key, te: "trailers", "content-type": "application/grpc" };
  connection.write(
    Buffer.concat([
      frame(frameType.headers, endHeaders, 3, request(path, headers, "POST")),
      frame(frameType.data, 0, 3, Buffer.alloc(5)),
    ]),
  );
  return connection;
}

function openHttp2Tls({ port }: Target): RawConnection {
  const connection = openRawTls(port, "h2");
  connection.write(preface());
  return connection;
}

/** Writes something, and then goes on with the connection. */
function begun(connection: RawConnection, bytes: string | Uint8Array): RawConnection {
  connection.write(bytes);
  return connection;
}

const healthRpc = "/grpc.health.v1.Health/Watch";
export const checkRpc = "/latchkey.v1.AccessService/StreamCheckAccess";
const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const watchRpc = "/latchkey.v1.EventService/WatchEvents";

// None of them comes to its end, however long a test takes.
const long = "a".repeat(10_000);
const slowFields = frame(frameType.headers, endHeaders | endStream, 5, request("/", { a: long }));
const slowText = Buffer.from(`GET / HTTP/1.1\r\nhost: a\r\nx-a: ${long}`);

/** Ways to send headers slowly, over TLS where the second target is used. */
export const slowHeaders: Readonly<
  Record<string, (clear: Target, secure: Target) => SlowClient | Promise<SlowClient>>
> = {
  "nothing at all": ({ port }) => drip(openRaw(port), () => ""),
  "letter by letter": ({ port }) => dripBytes(openRaw(port), slowText),
  "letter by letter, with TLS": (_, { port }) => dripBytes(openRawTls(port), slowText),
  "header by header": ({ port }) =>
    drip(begun(openRaw(port), "GET / HTTP/1.1\r\n"), () => "x-a: b\r\n"),
  "letter by letter, after a call": async ({ port }) =>
    dripBytes(await callFirstHttp1(openRaw(port)), slowText),
  "over HTTP/2, without their last frame": ({ port }) =>
    drip(begun(openRawHttp2(port), frame(frameType.headers, 0, 1, request("/"))), () => ""),
  "over HTTP/2": ({ port }) => dripBytes(openRawHttp2(port), slowFields),
  "over HTTP/2 with TLS": (_, secure) => dripBytes(openHttp2Tls(secure), slowFields),
  "after a call": async ({ port, firstKey }) =>
    dripBytes(await callFirst(openRawHttp2(port), firstKey), slowFields),
  "after a call, with TLS": async (_, secure) =>
    dripBytes(await callFirst(openHttp2Tls(secure), secure.firstKey), slowFields),
  "after a call, by one that falls silent": async ({ port, firstKey }) => {
    const connection = await callFirst(openRawHttp2(port), firstKey);
    return drip(begun(connection, slowFields.subarray(0, 100)), () => "");
  },
  "beside a stream of answers": async ({ port, firstKey }) =>
    dripBytes(await streamFirst(openRawHttp2(port), firstKey, healthRpc), slowFields),
  "beside a stream of messages": async ({ port, firstKey }) =>
    dripBytes(await streamFirst(openRawHttp2(port), firstKey, checkRpc), slowFields),
};

/** Sends a body byte by byte over HTTP/1.1. */
export function slowBodyHttp1({ port, firstKey }: Target): SlowClient {
  const connection = begun(
    openRaw(port),
    `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${firstKey}\r\n` +
      "content-type: application/json\r\ncontent-length: 100000\r\n\r\n",
  );
  return drip(connection, () => " ");
}

/**
 * Sends slow bodies until one is cut off with a response. A byte that arrives
 * after the server closed resets the connection, and its response is lost.
 */
export async function sendSlowBodyUntilResponse(target: Target): Promise<CutOff> {
  for (;;) {
    const cutOff = await slowBodyHttp1(target).over;
    if (cutOff.answer !== "") {
      return cutOff;
    }
  }
}

/** The same over HTTP/2. */
export function slowBodyHttp2(
  { url, firstKey }: Target,
  path: string,
  headers: OutgoingHttpHeaders,
): SlowClient {
  const session = connectHttp2(url);
  session.on("error", () => {});
  const begunAt = performance.now();
  const stream = session.request({
    ...{ ":method": "POST", ":path": path, "svc-api-key": firstKey, te: "trailers" },
    ...headers,
  });
  let answer = "";
  const note = (got: Readonly<Record<string, unknown>>) => {
    answer = String(got["grpc-status"] ?? got[":status"] ?? answer);
  };
  stream.on("response", note);
  stream.on("trailers", note);
  stream.on("error", () => {});
  stream.resume();
  // The prefix of a message that is long.
  stream.write(Buffer.from([0, 0, 1, 0]));
  const timer = setInterval(() => stream.write(Buffer.alloc(1)), pace);
  return {
    isOpen: () => !stream.closed,
    hangUp: () => session.destroy(),
    over: new Promise((resolve) => {
      stream.on("close", () => {
        clearInterval(timer);
        session.destroy();
        resolve({ after: performance.now() - begunAt, answer });
      });
    }),
  };
}

/** What a body can be that comes slowly over HTTP/2. */
export const slowBodies: readonly [what: string, path: string, headers: OutgoingHttpHeaders][] = [
  ["REST", "/applications", { "content-type": "application/json" }],
  ["Connect", createRpc, { "content-type": "application/json" }],
  [
    "Connect, compressed",
    createRpc,
    { "content-type": "application/json", "content-encoding": "gzip" },
  ],
  ["gRPC", createRpc, { "content-type": "application/grpc" }],
  ["gRPC, compressed", createRpc, { "content-type": "application/grpc", "grpc-encoding": "gzip" }],
  ["gRPC in a stream of answers", watchRpc, { "content-type": "application/grpc" }],
  ["Connect in a stream of answers", watchRpc, { "content-type": "application/connect+proto" }],
  ["gRPC in a stream of messages", checkRpc, { "content-type": "application/grpc" }],
  [
    "gRPC in a stream of messages, compressed",
    checkRpc,
    { "content-type": "application/grpc", "grpc-encoding": "gzip" },
  ],
  ["Connect in a stream of messages", checkRpc, { "content-type": "application/connect+proto" }],
];
