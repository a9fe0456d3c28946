import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { keyHeader, type Load, type LoadClient, type LoadRequest, loadHost } from "./load.js";

interface Waiting {
  resolve(answer: string): void;
  reject(error: Error): void;
}

/**
 * Sends prepared bytes and reads no more of an answer than it must: what it
 * spends must not be the limit of the server that it drives.
 */
export function createHttp1Client(load: Load): LoadClient {
  const prepared = new Map<LoadRequest, Buffer>();
  const mustHold = load.mustHold === undefined ? undefined : new RegExp(load.mustHold);
  const connections: { readonly socket: Socket; waiting: Waiting | undefined }[] = [];

  function finish({ resolve, reject }: Waiting, { status, body }: ResponseHead): void {
    const isExpected = status === load.status && (mustHold?.test(body.toString("latin1")) ?? true);
    if (isExpected) {
      resolve(load.keepAnswers ? body.toString("utf8") : "");
    } else {
      reject(new Error(`answered ${status} ${body}`));
    }
  }

  async function openOne(): Promise<void> {
    const socket = connect(load.port, loadHost);
    await once(socket, "connect");
    socket.setNoDelay();
    const connection = { socket, waiting: undefined as Waiting | undefined };
    const reader = createResponseReader();
    const fail = (error: Error) => connection.waiting?.reject(error);
    socket.on("data", (part) => {
      const { waiting } = connection;
      try {
        const answer = reader.add(part as Buffer);
        if (answer && waiting) {
          connection.waiting = undefined;
          finish(waiting, answer);
        }
      } catch (error) {
        fail(error as Error);
      }
    });
    socket.on("error", fail);
    socket.on("close", () => fail(new Error("the connection was closed")));
    connections.push(connection);
  }

  function bytesOf(request: LoadRequest): Buffer {
    const known = prepared.get(request);
    if (known) {
      return known;
    }
    const bytes = requestBytes(load, request);
    prepared.set(request, bytes);
    return bytes;
  }

  return {
    open: async () => {
      load.requests.forEach(bytesOf);
      await Promise.all(Array.from({ length: load.connections }, openOne));
    },
    send: (request, at) =>
      new Promise((resolve, reject) => {
        const connection = connections[at];
        if (!connection || connection.socket.closed) {
          reject(new Error("the connection was closed"));
          return;
        }
        connection.waiting = { resolve, reject };
        connection.socket.write(bytesOf(request));
      }),
    close: () => {
      for (const { socket } of connections) {
        socket.destroy();
      }
    },
  };
}

/** Takes what a connection receives apart into answers of HTTP/1.1, of which one comes at a time. */
interface ResponseReader {
  /** Adds what has come, and answers the whole answer once it is there. */
  add(part: Buffer): ResponseHead | undefined;
}

interface ResponseHead {
  readonly status: number;
  /** As it came: where its parts have no length beforehand, those of the parts are in it. */
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
      const answer = readAnswer(bytes);
      received = answer ? undefined : bytes;
      return answer;
    },
  };
}

function readAnswer(bytes: Buffer): ResponseHead | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0) {
    return undefined;
  }
  const head = bytes.toString("latin1", 0, end).toLowerCase();
  const status = Number(head.slice(statusAt, statusAt + 3));
  const body = bytes.subarray(end + headEnd.length);
  return isWhole(head, status, body) ? { status, body } : undefined;
}

function isWhole(head: string, status: number, body: Buffer): boolean {
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
  throw new Error(`an answer without a length: ${head}`);
}

/** A request as HTTP/1.1 has it on the wire. */
export function requestBytes(load: Load, { key, path = load.path, body }: LoadRequest): Buffer {
  const bytes = Buffer.from(body ?? "");
  const head = [
    `${load.verb} ${path} HTTP/1.1`,
    `host: ${loadHost}:${load.port}`,
    `${keyHeader}: ${key}`,
    ...(load.verb === "GET"
      ? []
      : [
          `content-type: ${load.contentType ?? "application/json"}`,
          `content-length: ${bytes.length}`,
        ]),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), bytes]);
}
