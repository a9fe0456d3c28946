/** The client for browsers: `latchkey/client` with the condition `browser`. */
import { createConnectTransport } from "@connectrpc/connect-web";
import {
  type ClientOptions,
  requireKey,
  retryCalls,
  sendKey,
} from "../contract/client-interceptors.js";
import { createClientOn, type LatchkeyClient } from "./client.js";

export { type ProblemReport, problemOf } from "../contract/problem-report.js";
export { createClientOn, type LatchkeyClient } from "./client.js";

/** Creates a Connect client that uses `fetch`. Failed calls are retried if that is safe. Throws without a key. */
export function createLatchkeyClient(options: ClientOptions): LatchkeyClient {
  requireKey(options.key);
  const interceptors = [retryCalls(), sendKey(options)];
  return createClientOn(createConnectTransport({ baseUrl: options.url, interceptors }));
}

export type { ClientOptions } from "../contract/client-interceptors.js";
