import cluster from "node:cluster";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import type { BootstrapResult } from "../bootstrap.js";
import type { Snapshot } from "../telemetry/metrics/snapshot.js";

/** A handle of a worker in the primary process. */
export interface WorkerProcess {
  readonly pid: number | undefined;
  /** The worker's stdout. */
  readonly output: Readable;
  /** Resolves with the address. Rejects with the reason if the worker exits before it listens. */
  readonly listening: Promise<AddressInfo>;
  /** Resolves if this worker created the first key, before `listening` does. */
  readonly firstKey: Promise<FirstKey>;
  /** Resolves with the reason when the worker has exited. */
  readonly exited: Promise<string>;
  /** Requests the worker's metrics. Resolves with `undefined` if the worker exits first. */
  snapshot(): Promise<Snapshot | undefined>;
  /** Sets the function that returns the metrics of all workers when the worker requests them. */
  onScrape(scrape: () => Promise<string>): void;
  /** Sends SIGTERM, and SIGKILL after `timeout` milliseconds. */
  stop(timeout: number): void;
}

interface FirstKey {
  readonly first: BootstrapResult;
  readonly address: AddressInfo;
}

/** Messages from a worker to the primary process. */
export type WorkerMessage =
  | { readonly listening: AddressInfo; readonly first?: BootstrapResult | undefined }
  /** Why the worker exits, for the operator. */
  | { readonly failure: string }
  /** The requested metrics. */
  | { readonly snapshot: Snapshot }
  /** Requests the metrics of all workers, with a request number. */
  | { readonly scrape: number };

/** Messages from the primary process to a worker. */
export type PrimaryMessage =
  | { readonly request: "snapshot" }
  /** The metrics of all workers, with the number of the request. */
  | { readonly scraped: number; readonly text: string };

/** Forks a worker with the same program, flags and environment. */
export function startWorker(): WorkerProcess {
  cluster.setupPrimary({ stdio: ["inherit", "pipe", "inherit", "ipc"] });
  const worker = cluster.fork();
  let failure: string | undefined;
  let pendingSnapshot: Promise<Snapshot | undefined> | undefined;
  const exited = new Promise<string>((resolve) => {
    worker.on("exit", (code, signal) => {
      resolve(failure ?? `worker exited with ${signal || `code ${code}`}`);
    });
    worker.on("error", (error) => {
      // A running worker emits errors too, for example if it dies while a
      // connection is passed to it. The exit event follows in that case.
      if (worker.process.pid === undefined) {
        resolve(`worker failed to start: ${error.message}`);
      }
    });
  });
  const firstKey = new Promise<FirstKey>((resolve) => {
    worker.on("message", (message: WorkerMessage) => {
      if ("listening" in message && message.first) {
        resolve({ first: message.first, address: message.listening });
      }
    });
  });
  const listening = new Promise<AddressInfo>((resolve, reject) => {
    worker.on("message", (message: WorkerMessage) => {
      if ("failure" in message) {
        failure = message.failure;
      } else if ("listening" in message) {
        resolve(message.listening);
      }
    });
    exited.then((reason) => reject(new Error(reason)));
  });
  // The rejection may happen before the promise is awaited.
  listening.catch(() => {});

  /** Does nothing if the worker is about to exit. */
  function send(message: PrimaryMessage): void {
    if (worker.isConnected()) {
      worker.send(message, () => {});
    }
  }

  function requestSnapshot(): Promise<Snapshot | undefined> {
    return new Promise((resolve) => {
      // Not a race with `exited`, which would retain every snapshot until the worker exits.
      const end = (snapshot?: Snapshot) => {
        worker.off("message", onMessage).off("exit", onExit);
        pendingSnapshot = undefined;
        resolve(snapshot);
      };
      const onExit = () => end();
      const onMessage = (message: WorkerMessage) => {
        if ("snapshot" in message) {
          end(message.snapshot);
        }
      };
      worker.on("message", onMessage).on("exit", onExit);
      send({ request: "snapshot" });
    });
  }

  return {
    pid: worker.process.pid,
    output: worker.process.stdout as Readable,
    listening,
    firstKey,
    exited,
    async snapshot() {
      if (worker.isDead()) {
        return undefined;
      }
      // A slow worker has at most one pending request.
      pendingSnapshot ??= requestSnapshot();
      return pendingSnapshot;
    },
    onScrape(scrape) {
      worker.on("message", (message: WorkerMessage) => {
        if ("scrape" in message) {
          // On failure the worker times out by itself.
          scrape().then(
            (text) => send({ scraped: message.scrape, text }),
            () => {},
          );
        }
      });
    },
    stop(timeout) {
      worker.process.kill("SIGTERM");
      const kill = setTimeout(() => worker.process.kill("SIGKILL"), timeout);
      exited.then(() => clearTimeout(kill));
    },
  };
}
