import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { keyHeader, type Load, type LoadClient, type LoadRequest, loadHost } from "./load.js";

interface PendingRequest {
  resolve(body: string): void;
  reject(error: Error): void;
}

/**
 * Sends prepared bytes and parses as little as possible of each response, so that
 * the client is not the bottleneck.
 */
export function createHttp1Client(load: Load): LoadClient {
  const prepared = new Map<LoadRequest, Buffer>();
  const bodyPattern = load.bodyPattern === undefined ? undefined : new RegExp(load.bodyPattern);
  const connections: { readonly socket: Socket; pending: PendingRequest | undefined }[] = [];

  function finish({ resolve, reject }: PendingRequest, { status, body }: Response): void {
    const isExpected =
      status === load.status && (bodyPattern?.test(body.toString("latin1")) ?? true);
    if (isExpected) {
      resolve(load.keepResponses ? body.toString("utf8") : "");
    } else {
      reject(new Error(`returned ${status} ${body}`));
    }
  }

  async function openConnection(): Promise<void> {
    const socket = connect(load.port, loadHost);
    await once(socket, "connect");
    socket.setNoDelay();
    const connection = { socket, pending: undefined as PendingRequest | undefined };
    const reader = createResponseReader();
    const fail = (error: Error) => connection.pending?.reject(error);
    socket.on("data", (part) => {
      const { pending } = connection;
      try {
        const response = reader.add(part as Buffer);
        if (response && pending) {
          connection.pending = undefined;
          finish(pending, response);
        }
      } catch (error) {
        fail(error as Error);
      }
    });
    socket.on("error", fail);
    socket.on("close", () => fail(new Error("the connection was closed")));
    connections.push(connection);
  }

  function getBytes(request: LoadRequest): Buffer {
    const cached = prepared.get(request);
    if (cached) {
      return cached;
    }
    const bytes = encodeRequest(load, request);
    prepared.set(request, bytes);
    return bytes;
  }

  return {
    open: async () => {
      load.requests.forEach(getBytes);
      await Promise.all(Array.from({ length: load.connections }, openConnection));
    },
    send: (request, index) =>
      new Promise((resolve, reject) => {
        const connection = connections[index];
        if (!connection || connection.socket.closed) {
          reject(new Error("the connection was closed"));
          return;
        }
        connection.pending = { resolve, reject };
        connection.socket.write(getBytes(request));
      }),
    close: () => {
      for (const { socket } of connections) {
        socket.destroy();
      }
    },
  };
}

/** Parses the HTTP/1.1 responses of a connection, one at a time. */
interface ResponseReader {
  /** Adds received bytes and returns the response once it is complete. */
  add(part: Buffer): Response | undefined;
}

interface Response {
  readonly status: number;
  /** As received: a chunked body includes the chunk sizes. */
  readonly body: Buffer;
}

const headEnd = "\r\n\r\n";
const chunksEnd = "0\r\n\r\n";
const statusAt = "HTTP/1.1 ".length;

function createResponseReader(): ResponseReader {
  let received: Buffer | undefined;
  return {
    add(part) {
      const bytes = received ? Buffer.concat([received, part]) : part;
      const response = parseResponse(bytes);
      received = response ? undefined : bytes;
      return response;
    },
  };
}

function parseResponse(bytes: Buffer): Response | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0) {
    return undefined;
  }
  const head = bytes.toString("latin1", 0, end).toLowerCase();
  const status = Number(head.slice(statusAt, statusAt + 3));
  const body = bytes.subarray(end + headEnd.length);
  return isComplete(head, status, body) ? { status, body } : undefined;
}

function isComplete(head: string, status: number, body: Buffer): boolean {
  const lengthAt = head.indexOf("\r\ncontent-length:");
  if (lengthAt >= 0) {
    return body.length >= Number.parseInt(head.slice(lengthAt + "\r\ncontent-length:".length), 10);
  }
  if (head.includes("\r\ntransfer-encoding: chunked")) {
    return body.subarray(-chunksEnd.length).toString("latin1") === chunksEnd;
  }
  if (status === 204) {
    return true;
  }
  throw new Error(`the response has no length: ${head}`);
}

export function encodeRequest(
  load: Load,
  { key, headers = {}, path = load.path, body }: LoadRequest,
): Buffer {
  const bytes = Buffer.from(body ?? "");
  const head = [
    `${load.verb} ${path} HTTP/1.1`,
    `host: ${loadHost}:${load.port}`,
    `${keyHeader}: ${key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(load.verb === "GET"
      ? []
      : [
          `content-type: ${load.contentType ?? "application/json"}`,
          `content-length: ${bytes.length}`,
        ]),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), bytes]);
}
