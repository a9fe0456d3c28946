import { once } from "node:events";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { useCleanup } from "../support/cleanup.js";
import { watchHealth } from "../support/http/raw-grpc.js";
import {
  type CapturedProcess,
  childrenOf,
  withTempFolder,
} from "../support/service/run-latchkey.js";
import {
  firstKeyPattern,
  listeningPattern,
  useServices,
} from "../support/service/service-process.js";

export const listeningLines = new RegExp(listeningPattern, "g");
export const firstKeys = new RegExp(firstKeyPattern, "g");

/** A service with two workers. */
interface WorkersService extends CapturedProcess {
  readonly url: string;
  readonly key: string;
  /** The process ids of the workers. */
  workers(): number[];
}

/** Starts services with two workers, each with an empty data folder. */
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

/** Opens HTTP/2 sessions, and closes them after the test. */
export function useSessions() {
  const stopAfterTest = useCleanup();

  return function openSession(url: string, options = {}): ClientHttp2Session {
    const session = connect(url, options);
    stopAfterTest(() => session.destroy());
    return session;
  };
}

/** Sends a GET request over a new connection and returns the status. */
export function getStatus(url: string, path: string, key: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "SVC-API-KEY": key };
    get(`${url}${path}`, { headers, agent: new Agent() }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}

export function getStatusManyTimes(url: string, key: string): Promise<(number | undefined)[]> {
  return Promise.all(Array.from({ length: 20 }, () => getStatus(url, "/applications/key", key)));
}

/** Watches the health of the worker behind this connection, and collects its statuses until the stream ends. */
export function watchWorker(session: ClientHttp2Session) {
  const stream = watchHealth(session);
  const statuses: number[] = [];
  stream.on("data", (frame: Buffer) => statuses.push(frame.at(-1) ?? 0));
  return { firstStatus: once(stream, "data"), statuses: once(stream, "end").then(() => statuses) };
}

export function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}
