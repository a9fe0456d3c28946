import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../../src/client/client.js";
import { sendKey } from "../../src/contract/client-interceptors.js";
import { keyHeader } from "../load/load.js";
import type { Journeys } from "./journeys.js";

/** How many journeys are under way at a time where the service is to be as busy as it can be. */
const busyLanes = 48;

/** The most that may be under way at a rate: beyond, the service is too slow for it. */
const mostUnderWay = 2_000;

/** Keeps the service as busy as it can be, and answers how many journeys went well each second. */
export async function findHighest(journeys: Journeys, seconds: number): Promise<number> {
  const begun = performance.now();
  const until = begun + seconds * 1000;
  let done = 0;
  async function keepGoing(): Promise<void> {
    while (performance.now() < until) {
      if (await journeys.next()) {
        done++;
      }
    }
  }
  await Promise.all(Array.from({ length: busyLanes }, keepGoing));
  return done / ((performance.now() - begun) / 1000);
}

/** Begins so many journeys each second, whether those before are done or not. */
export async function keepRate(journeys: Journeys, rate: number, seconds: number): Promise<void> {
  const begun = performance.now();
  const underWay = new Set<Promise<unknown>>();
  let started = 0;
  while (performance.now() - begun < seconds * 1000) {
    const due = Math.floor(((performance.now() - begun) / 1000) * rate);
    while (started < due) {
      started++;
      const journey = journeys.next();
      underWay.add(journey);
      journey.then(() => underWay.delete(journey));
    }
    if (underWay.size > mostUnderWay) {
      throw new Error(`the service cannot keep up with ${Math.round(rate)} journeys a second`);
    }
    await delay(5);
  }
  await Promise.all(underWay);
}

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
