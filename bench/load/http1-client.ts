import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Answer, createAnswerReader } from "./answer-reader.js";
import type { LoadClient } from "./drive.js";
import { type Load, type LoadRequest, loadHost } from "./load.js";
import { requestBytes } from "./request-bytes.js";

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

  function finish({ resolve, reject }: Waiting, { status, body }: Answer): void {
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
    const reader = createAnswerReader();
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
