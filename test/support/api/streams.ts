import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import {
  createGrpcWebTransport,
  createConnectTransport as createWebTransport,
} from "@connectrpc/connect-web";
import { useCleanup } from "../cleanup.js";
import type { TestServer } from "../service/server.js";
import { ApiFailure, type StreamingApi } from "./api.js";
import { createConnectApi } from "./connect.js";
import { createGrpcApi } from "./grpc.js";

type Connect = (server: TestServer) => StreamingApi;

/** Clients that support bidirectional streams. */
export const duplexClients: readonly [client: string, connect: Connect][] = [
  [
    "connect over HTTP/2",
    ({ url: baseUrl }) => {
      const sessionManager = new Http2SessionManager(baseUrl);
      const transport = createConnectTransport({ baseUrl, httpVersion: "2", sessionManager });
      return createConnectApi(transport, () => sessionManager.abort());
    },
  ],
  ["grpc", ({ port }) => createGrpcApi(`127.0.0.1:${port}`)],
];

/** Clients that support server streams. */
export const streamClients: readonly [client: string, connect: Connect][] = [
  ...duplexClients,
  ["connect", ({ url: baseUrl }) => createConnectApi(createWebTransport({ baseUrl }))],
  ["grpc-web", ({ url: baseUrl }) => createConnectApi(createGrpcWebTransport({ baseUrl }))],
];

/** Selects one client. In the quick suite, the stream suites together use every client once. */
export const clientNamed = (name: string) => streamClients.filter(([client]) => client === name);

/** Selects all clients but one, which is tested with another store. */
export const clientsExcept = (name: string) => streamClients.filter(([client]) => client !== name);

export interface Reader<T> {
  /** Resolves with the next message. */
  next(): Promise<T>;
  /** Reads to the end. Resolves with the error of the stream, if any. */
  end(): Promise<ApiFailure | undefined>;
  stop(): void;
}

/** Reads streams and cancels them after each test. */
export function useReaders() {
  const stopAfterTest = useCleanup();

  return function read<T>(open: (signal: AbortSignal) => AsyncIterable<T>): Reader<T> {
    const controller = new AbortController();
    const messages = open(controller.signal)[Symbol.asyncIterator]();
    const stop = () => controller.abort();
    stopAfterTest(stop);
    return {
      async next() {
        const { done, value } = await messages.next();
        if (done) {
          throw new Error("the stream has ended");
        }
        return value;
      },

      async end() {
        try {
          while (!(await messages.next()).done) {}
          return undefined;
        } catch (failure) {
          if (failure instanceof ApiFailure) {
            return failure;
          }
          throw failure;
        }
      },

      stop,
    };
  };
}

/** The requests of a client stream. */
interface RequestStream<T> extends AsyncIterable<T> {
  send(...items: T[]): void;
  end(): void;
}

export function createRequestStream<T>(): RequestStream<T> {
  const queue: T[] = [];
  let isEnded = false;
  let wake = () => {};
  return {
    send(...items) {
      queue.push(...items);
      wake();
    },

    end() {
      isEnded = true;
      wake();
    },

    async *[Symbol.asyncIterator]() {
      for (;;) {
        yield* queue.splice(0);
        if (isEnded && queue.length === 0) {
          return;
        }
        if (queue.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
