import { Agent, request } from "node:http";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../../src/client/client.js";
import { sendKey } from "../../src/contract/client-interceptors.js";
import { keyHeader } from "../load/load.js";

/** Calls the REST API over connections that are kept. Answers the body, or throws where the status is another. */
type Rest = (key: string, verb: string, path: string, options: RestOptions) => Promise<Body>;

interface RestOptions {
  /** The statuses that are no failure. */
  readonly expect: readonly number[];
  readonly body?: string;
}

/** The fields of answers that the journeys go on with, or look at. */
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

/** So few that all of them are in use: open files are to tell of the service, not of those who call. */
const usualConnections = 32;

export function createRest(
  url: string,
  connections = usualConnections,
): { readonly call: Rest; close(): void } {
  // In turn, so that none idles until the service closes it.
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
              reject(new Error(`${verb} ${path} answered ${status} ${text}`));
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

/** A client that sends nothing twice: what gets lost is to be seen, which the package's own client would make good. */
export function createGrpcClient(url: string, key: string): GrpcClient {
  const sessionManager = new Http2SessionManager(url);
  const interceptors = [sendKey({ url, key })];
  const transport = createGrpcTransport({ baseUrl: url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}
