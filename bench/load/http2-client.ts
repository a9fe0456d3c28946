import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2";
import { keyHeader, type Load, type LoadClient, type LoadRequest, loadHost } from "./load.js";

/** Sends plain requests and unary gRPC calls over HTTP/2. */
export function createHttp2Client(load: Load): LoadClient {
  const isGrpc = load.protocol === "grpc";
  const bodyPattern = load.bodyPattern === undefined ? undefined : new RegExp(load.bodyPattern);
  let sessions: readonly ClientHttp2Session[] = [];

  function createHeaders({ key, path = load.path }: LoadRequest) {
    return {
      ":method": load.verb,
      ":path": path,
      [keyHeader]: key,
      ...(isGrpc ? grpcHeaders : {}),
    };
  }

  function readStatus(headers: IncomingHttpHeaders, trailers: IncomingHttpHeaders): number {
    return Number(
      isGrpc ? (trailers["grpc-status"] ?? headers["grpc-status"]) : headers[":status"],
    );
  }

  return {
    open: async () => {
      sessions = await openSessions(load);
    },
    send: (request, index) =>
      new Promise((resolve, reject) => {
        const stream = (sessions[index] as ClientHttp2Session).request(createHeaders(request));
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
          const status = readStatus(head, trailers);
          const body = Buffer.concat(parts);
          if (status === load.status && (bodyPattern?.test(body.toString("latin1")) ?? true)) {
            resolve(load.keepResponses ? body.toString() : "");
          } else {
            reject(new Error(`returned ${status} ${trailers["grpc-message"] ?? body}`));
          }
        });
        stream.end(isGrpc ? encodeGrpcFrame(request.body ?? "") : undefined);
      }),
    close: () => closeSessions(sessions),
  };
}

async function openSessions({ port, connections }: Load): Promise<ClientHttp2Session[]> {
  const sessions = Array.from({ length: connections }, () => connect(`http://${loadHost}:${port}`));
  await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
  return sessions;
}

function closeSessions(sessions: readonly ClientHttp2Session[]): void {
  for (const session of sessions) {
    session.destroy();
  }
}

export const grpcHeaders = { "content-type": "application/grpc", te: "trailers" } as const;

const prefixSize = 5;

/** Prefixes a message with the gRPC compression flag (off) and its length. */
export function encodeGrpcFrame(message: string | Uint8Array): Buffer {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(prefixSize);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Splits the bytes of a stream into messages. */
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

/** The number of requests in flight per stream. */
const streamWindow = 64;

interface Streams {
  /** Adds the latencies in milliseconds. */
  run(deadline: number, latencies: number[]): Promise<void>;
  close(): void;
}

/**
 * Opens one call per connection and keeps its window of requests full. Responses
 * may arrive in any order, so each latency counts from the oldest pending request.
 */
export async function openStreams(load: Load): Promise<Streams> {
  const frames = load.requests.map(({ body = "" }) => encodeGrpcFrame(body));
  const key = load.requests[0]?.key ?? "";
  const bodyPattern = load.bodyPattern === undefined ? undefined : new RegExp(load.bodyPattern);
  const headers = { ":method": "POST", ":path": load.path, [keyHeader]: key, ...grpcHeaders };
  const sessions = await openSessions(load);
  let sent = 0;

  async function exchangeMessages(
    stream: ClientHttp2Stream,
    deadline: number,
    latencies: number[],
  ): Promise<void> {
    const sentAt: number[] = [];
    let received = 0;

    /** Sends several messages in one write. */
    function send(count: number): void {
      const now = performance.now();
      const batch: Buffer[] = [];
      for (let index = 0; index < count; index++) {
        batch.push(frames[sent++ % frames.length] as Buffer);
        sentAt.push(now);
      }
      stream.write(Buffer.concat(batch));
    }

    const read = createFrameReader((message) => {
      if (bodyPattern && !bodyPattern.test(message.toString("latin1"))) {
        stream.destroy(new Error(`returned ${message}`));
      }
      latencies.push(performance.now() - (sentAt[received++] as number));
    });
    stream.on("data", (part: Buffer) => {
      const before = received;
      read(part);
      if (performance.now() < deadline && received > before) {
        send(received - before);
      } else if (received === sentAt.length) {
        stream.end();
      }
    });
    send(streamWindow);
    const [trailers] = await once(stream, "trailers");
    if (Number(trailers["grpc-status"]) !== load.status || received !== sentAt.length) {
      throw new Error(
        `${received} of ${sentAt.length} responses, then status ${trailers["grpc-status"]} ${trailers["grpc-message"] ?? ""}`,
      );
    }
  }

  return {
    run: async (deadline, latencies) => {
      await Promise.all(
        sessions.map((session) => exchangeMessages(session.request(headers), deadline, latencies)),
      );
    },
    close: () => closeSessions(sessions),
  };
}
