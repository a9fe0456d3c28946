import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2";
import { percentile } from "../report/table.js";
import {
  keyHeader,
  type Load,
  type LoadClient,
  type LoadRequest,
  type LoadResult,
  loadHost,
} from "./load.js";

/** Sends requests over HTTP/2: plain ones, and calls of gRPC with one message. */
export function createHttp2Client(load: Load): LoadClient {
  const isGrpc = load.protocol === "grpc";
  const mustHold = load.mustHold === undefined ? undefined : new RegExp(load.mustHold);
  const sessions: ClientHttp2Session[] = [];

  async function openOne(): Promise<void> {
    const session = connect(`http://${loadHost}:${load.port}`);
    sessions.push(session);
    await once(session, "remoteSettings");
  }

  function headersOf({ key, path = load.path }: LoadRequest) {
    return {
      ":method": load.verb,
      ":path": path,
      [keyHeader]: key,
      ...(isGrpc ? grpcHeaders : {}),
    };
  }

  function statusOf(headers: IncomingHttpHeaders, trailers: IncomingHttpHeaders): number {
    return Number(
      isGrpc ? (trailers["grpc-status"] ?? headers["grpc-status"]) : headers[":status"],
    );
  }

  return {
    open: async () => {
      await Promise.all(Array.from({ length: load.connections }, openOne));
    },
    send: (request, at) =>
      new Promise((resolve, reject) => {
        const stream = (sessions[at] as ClientHttp2Session).request(headersOf(request));
        let head: IncomingHttpHeaders = {};
        let trailers: IncomingHttpHeaders = {};
        const parts: Buffer[] = [];
        stream.on("response", (headers) => {
          head = headers;
        });
        stream.on("trailers", (headers) => {
          trailers = headers;
        });
        stream.on("data", (part) => parts.push(part));
        stream.on("error", reject);
        stream.on("end", () => {
          const status = statusOf(head, trailers);
          const body = Buffer.concat(parts);
          if (status === load.status && (mustHold?.test(body.toString("latin1")) ?? true)) {
            resolve(load.keepAnswers ? body.toString() : "");
          } else {
            reject(new Error(`answered ${status} ${trailers["grpc-message"] ?? body}`));
          }
        });
        stream.end(isGrpc ? grpcFrame(request.body ?? "") : undefined);
      }),
    close: () => {
      for (const session of sessions) {
        session.destroy();
      }
    },
  };
}

/** The headers that make a request of HTTP/2 a call of gRPC. */
export const grpcHeaders = { "content-type": "application/grpc", te: "trailers" } as const;

const prefixSize = 5;

/** A message with what gRPC puts before it: that it is not compressed, and its length. */
export function grpcFrame(message: string | Uint8Array): Buffer {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(prefixSize);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Takes what a stream receives apart into messages. */
function createFrameReader(onMessage: (message: Buffer) => void): (part: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (part) => {
    let bytes = rest.length > 0 ? Buffer.concat([rest, part]) : part;
    while (bytes.length >= prefixSize) {
      const end = prefixSize + bytes.readUInt32BE(1);
      if (bytes.length < end) {
        break;
      }
      onMessage(bytes.subarray(prefixSize, end));
      bytes = bytes.subarray(end);
    }
    rest = bytes;
  };
}

/** How many requests of a stream are under way at a time. */
const streamWindow = 64;

/**
 * Opens one call on each connection and keeps as many requests under way in it
 * as the window holds. Answers may come in any order, so that a latency is
 * that from the oldest request under way.
 */
export async function driveStreams(load: Load): Promise<LoadResult> {
  const frames = load.requests.map(({ body = "" }) => grpcFrame(body));
  const key = load.requests[0]?.key ?? "";
  const mustHold = load.mustHold === undefined ? undefined : new RegExp(load.mustHold);
  const latencies: number[] = [];
  const started = performance.now();
  const deadline = started + load.seconds * 1000;
  let sent = 0;

  async function runStream(): Promise<void> {
    const session = connect(`http://${loadHost}:${load.port}`);
    const stream = session.request({
      ":method": "POST",
      ":path": load.path,
      [keyHeader]: key,
      ...grpcHeaders,
    });
    try {
      await exchange(stream);
    } finally {
      session.destroy();
    }
  }

  async function exchange(stream: ClientHttp2Stream): Promise<void> {
    const sentAt: number[] = [];
    let answered = 0;

    /** What is sent at once goes as one piece. */
    function send(count: number): void {
      const now = performance.now();
      const piece: Buffer[] = [];
      for (let at = 0; at < count; at++) {
        piece.push(frames[sent++ % frames.length] as Buffer);
        sentAt.push(now);
      }
      stream.write(Buffer.concat(piece));
    }

    const read = createFrameReader((message) => {
      if (mustHold && !mustHold.test(message.toString("latin1"))) {
        stream.destroy(new Error(`answered ${message}`));
      }
      latencies.push(performance.now() - (sentAt[answered++] as number));
    });
    stream.on("data", (part: Buffer) => {
      const before = answered;
      read(part);
      if (performance.now() < deadline && answered > before) {
        send(answered - before);
      } else if (answered === sentAt.length) {
        stream.end();
      }
    });
    send(streamWindow);
    const [trailers] = await once(stream, "trailers");
    if (Number(trailers["grpc-status"]) !== load.status || answered !== sentAt.length) {
      throw new Error(
        `${answered} of ${sentAt.length} answered, then status ${trailers["grpc-status"]} ${trailers["grpc-message"] ?? ""}`,
      );
    }
  }

  await Promise.all(Array.from({ length: load.connections }, runStream));
  return {
    requests: latencies.length,
    seconds: (performance.now() - started) / 1000,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    answers: [],
  };
}
