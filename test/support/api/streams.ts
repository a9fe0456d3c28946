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

/** Clients that can send and be sent a stream at the same time. */
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

/** Clients that can be sent a stream. */
export const streamClients: readonly [client: string, connect: Connect][] = [
  ...duplexClients,
  ["connect", ({ url: baseUrl }) => createConnectApi(createWebTransport({ baseUrl }))],
  ["grpc-web", ({ url: baseUrl }) => createConnectApi(createGrpcWebTransport({ baseUrl }))],
];

/** One client alone. In the quick suite, the stream suites together use every client once. */
export const clientNamed = (name: string) => streamClients.filter(([client]) => client === name);

/** Someone who reads a stream. */
export interface Reader<T> {
  /** The next message, when it comes. */
  next(): Promise<T>;
  /** Reads to the end, and answers why it ended, or nothing where it ended well. */
  end(): Promise<ApiFailure | undefined>;
  stop(): void;
}

/** Reads streams, and stops when the test is done. */
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

/** What a client sends, one after the other, until it ends it. */
interface RequestStream<T> extends AsyncIterable<T> {
  send(...items: T[]): void;
  end(): void;
}

export function createRequestStream<T>(): RequestStream<T> {
  const waiting: T[] = [];
  let isEnded = false;
  let wake = () => {};
  return {
    send(...items) {
      waiting.push(...items);
      wake();
    },

    end() {
      isEnded = true;
      wake();
    },

    async *[Symbol.asyncIterator]() {
      for (;;) {
        yield* waiting.splice(0);
        if (isEnded && waiting.length === 0) {
          return;
        }
        if (waiting.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
