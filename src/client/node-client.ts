import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type ClientOptions, createClientOn, type LatchkeyClient, sendKey } from "./client.js";
import { retryLost } from "./retry.js";

export interface LatchkeyNodeClient extends LatchkeyClient {
  /** Ends the connection, and the calls under way with it. A later call opens a new one. */
  close(): void;
}

/** How often a connection is tried while nothing comes, so that one that broke is noticed. */
const pingInterval = 5_000;
/** How long it may take to answer such a try before the connection counts as broken. */
const pingTimeout = 5_000;

/** Creates a client that speaks gRPC. Calls that got lost are sent again where that is safe. */
export function createLatchkeyClient(options: ClientOptions): LatchkeyNodeClient {
  const sessionManager = new Http2SessionManager(options.url, {
    pingIntervalMs: pingInterval,
    pingTimeoutMs: pingTimeout,
  });
  const interceptors = [retryLost(), sendKey(options)];
  const transport = createGrpcTransport({ baseUrl: options.url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}
