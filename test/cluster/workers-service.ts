import { once } from "node:events";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { useCleanup } from "../support/cleanup.js";
import { watchHealth } from "../support/http/raw-grpc.js";
import { childrenOf, type LatchkeyProcess, withTempFolder } from "../support/service/process.js";
import {
  firstKeyPattern,
  listeningPattern,
  useServices,
} from "../support/service/service-process.js";

export const everyListeningLine = new RegExp(listeningPattern, "g");
export const everyFirstKey = new RegExp(firstKeyPattern, "g");

/** A service of two workers. */
interface WorkersService extends LatchkeyProcess {
  readonly url: string;
  readonly key: string;
  /** The processes that serve. */
  workers(): number[];
}

/** Gives tests services of two workers, each on an empty folder. */
export function useWorkers() {
  const start = useServices();

  return function withService(
    use: (service: WorkersService, DATA_DIR: string) => Promise<void>,
    environment: Record<string, string> = {},
  ): Promise<void> {
    return withTempFolder(async (DATA_DIR) => {
      const settings = { DATA_DIR, WORKERS: "2", ...environment };
      const { url, firstKey: key, process } = await start(settings);
      const workers = () => childrenOf(process.child.pid as number);
      await use({ ...process, url, key, workers }, DATA_DIR);
    });
  };
}

/** Opens sessions of HTTP/2, and ends them after the test. */
export function useSessions() {
  const stopAfterTest = useCleanup();

  return function openSession(url: string, options = {}): ClientHttp2Session {
    const session = connect(url, options);
    stopAfterTest(() => session.destroy());
    return session;
  };
}

/** Asks over a connection of its own, and answers the status. */
export function getReady(url: string, path: string, key: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "SVC-API-KEY": key };
    get(`${url}${path}`, { headers, agent: new Agent() }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}

export function getReadyManyTimes(url: string, key: string): Promise<(number | undefined)[]> {
  return Promise.all(Array.from({ length: 20 }, () => getReady(url, "/applications/key", key)));
}

/** Watches the health of the worker that has this connection: the statuses that it tells until the stream ends. */
export function watchWorker(session: ClientHttp2Session) {
  const stream = watchHealth(session);
  const statuses: number[] = [];
  stream.on("data", (frame: Buffer) => statuses.push(frame.at(-1) ?? 0));
  return { told: once(stream, "data"), statuses: once(stream, "end").then(() => statuses) };
}

export function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}
