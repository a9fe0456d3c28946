import { Agent, request } from "node:http";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../../src/client/client.js";
import { sendKey } from "../../src/contract/client-interceptors.js";
import { keyHeader } from "../load/load.js";

/** Calls the REST API over persistent connections. Throws on an unexpected status. */
type CallRest = (key: string, verb: string, path: string, options: RestOptions) => Promise<Body>;

interface RestOptions {
  /** The expected statuses. */
  readonly expect: readonly number[];
  readonly body?: string;
}

/** The response fields that the journeys use. */
interface Body {
  readonly id: string;
  readonly key: string;
  readonly session_key: string;
  readonly nonce: string;
  readonly name: string;
  readonly application_id: string;
  readonly allowed: boolean;
  readonly data: readonly unknown[];
}

/** Few enough that all stay in use, so that the number of open files depends only on the service. */
const defaultConnections = 32;

export function createRestClient(
  url: string,
  connections = defaultConnections,
): { readonly call: CallRest; close(): void } {
  // Round robin, so that no connection idles until the service closes it.
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
  return {
    call: (key, verb, path, { expect, body }) =>
      new Promise((resolve, reject) => {
        const headers = { [keyHeader]: key, "content-type": "application/json" };
        const outgoing = request(`${url}${path}`, { method: verb, headers, agent }, (incoming) => {
          const parts: Buffer[] = [];
          incoming.on("data", (part) => parts.push(part));
          incoming.on("error", reject);
          incoming.on("end", () => {
            const text = Buffer.concat(parts).toString();
            const { statusCode: status = 0 } = incoming;
            if (!expect.includes(status)) {
              reject(new Error(`${verb} ${path} returned ${status} ${text}`));
              return;
            }
            try {
              resolve(incoming.headers["content-type"]?.includes("json") ? JSON.parse(text) : {});
            } catch (error) {
              reject(error);
            }
          });
        });
        outgoing.on("error", reject);
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}

interface GrpcClient extends LatchkeyClient {
  close(): void;
}

/** A client without retries, unlike that of the package, so that lost calls are detected. */
export function createGrpcClient(url: string, key: string): GrpcClient {
  const sessionManager = new Http2SessionManager(url);
  const interceptors = [sendKey({ url, key })];
  const transport = createGrpcTransport({ baseUrl: url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}
