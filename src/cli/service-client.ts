import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { createConnectTransport } from "@connectrpc/connect-node";
import {
  type ClientOptions,
  createClientOn,
  type LatchkeyClient,
  sendKey,
} from "../client/client.js";
import { retryLost } from "../client/retry.js";

export interface ServiceClient extends LatchkeyClient {
  /** Ends its connections, and the calls under way with them. */
  close(): void;
}

/** Creates a client that speaks Connect over HTTP/1.1, which every proxy lets through. */
export function createServiceClient(options: ClientOptions): ServiceClient {
  const isSecure = new URL(options.url).protocol === "https:";
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const transport = createConnectTransport({
    baseUrl: options.url,
    httpVersion: "1.1",
    interceptors: [retryLost(), sendKey(options)],
    nodeOptions: { agent },
  });
  return { ...createClientOn(transport), close: () => agent.destroy() };
}
