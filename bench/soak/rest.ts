import { Agent, request } from "node:http";
import { keyHeader } from "../load/load.js";

/** Calls the REST API over connections that are kept. Answers the body, or throws where the status is another. */
export type Rest = (key: string, verb: string, path: string, options: RestOptions) => Promise<Body>;

interface RestOptions {
  /** The statuses that are no failure. */
  readonly expect: readonly number[];
  readonly body?: string;
}

/** The fields of answers that the journeys go on with. */
export interface Body {
  readonly id: string;
  readonly key: string;
  readonly session_key: string;
  readonly nonce: string;
}

/** So few that all of them are in use: open files are to tell of the service, not of those who call. */
const connections = 32;

/** How long an answer may take before it counts as missing. */
const patience = 15_000;

export function createRest(url: string): { readonly call: Rest; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    call: (key, verb, path, { expect, body }) =>
      new Promise((resolve, reject) => {
        const headers = { [keyHeader]: key, "content-type": "application/json" };
        const options = { method: verb, headers, agent, timeout: patience };
        const outgoing = request(`${url}${path}`, options, (incoming) => {
          const parts: Buffer[] = [];
          incoming.on("data", (part) => parts.push(part));
          incoming.on("error", reject);
          incoming.on("end", () => {
            const text = Buffer.concat(parts).toString();
            const { statusCode: status = 0 } = incoming;
            if (expect.includes(status)) {
              resolve(text === "" ? {} : JSON.parse(text));
            } else {
              reject(new Error(`${verb} ${path} answered ${status} ${text}`));
            }
          });
        });
        outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer to ${verb} ${path}`)));
        outgoing.on("error", reject);
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}
