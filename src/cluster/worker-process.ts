import cluster from "node:cluster";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import type { Snapshot } from "../telemetry/metrics/families.js";

/** A worker, as seen from the process that started it. */
export interface WorkerProcess {
  readonly pid: number | undefined;
  /** What it writes to its stdout. */
  readonly output: Readable;
  /** Resolves with where it listens, and rejects with why it exited where it never did. */
  readonly listening: Promise<AddressInfo>;
  /** Resolves with the reason when it has exited. */
  readonly exited: Promise<string>;
  /** Asks what it has counted so far; `undefined` where it ends before it answers. */
  snapshot(): Promise<Snapshot | undefined>;
  /** Sets what answers it when it wants to know what all workers have counted. */
  onScrape(scrape: () => Promise<string>): void;
  /** Lets it finish its calls, and kills it where it has not exited after `patience` milliseconds. */
  stop(patience: number): void;
}

/** Starts a process that runs the same program with the same flags and environment. */
export function startWorker(): WorkerProcess {
  cluster.setupPrimary({ stdio: ["inherit", "pipe", "inherit", "ipc"] });
  const worker = cluster.fork();
  let failure: string | undefined;
  let asked: Promise<Snapshot> | undefined;
  const exited = new Promise<string>((resolve) => {
    worker.on("exit", (code, signal) => {
      resolve(failure ?? `a worker exited with ${signal || `exit code ${code}`}`);
    });
    worker.on("error", (error) => {
      // One that is running meets errors too, as when it dies while a
      // connection is handed to it; that it has exited is told all the same.
      if (worker.process.pid === undefined) {
        resolve(`a worker could not be started: ${error.message}`);
      }
    });
  });
  const listening = new Promise<AddressInfo>((resolve, reject) => {
    worker.on("message", (report: WorkerMessage) => {
      if ("failure" in report) {
        failure = report.failure;
      } else if ("listening" in report) {
        resolve(report.listening);
      }
    });
    exited.then((reason) => reject(new Error(reason)));
  });
  // Whoever is interested asks for it.
  listening.catch(() => {});

  /** Nothing comes of it where the worker is about to end. */
  function tell(order: PrimaryMessage): void {
    if (worker.isConnected()) {
      worker.send(order, () => {});
    }
  }

  function askForSnapshot(): Promise<Snapshot> {
    return new Promise((resolve) => {
      const take = (report: WorkerMessage) => {
        if ("snapshot" in report) {
          worker.off("message", take);
          asked = undefined;
          resolve(report.snapshot);
        }
      };
      worker.on("message", take);
      tell({ ask: "snapshot" });
    });
  }

  return {
    pid: worker.process.pid,
    output: worker.process.stdout as Readable,
    listening,
    exited,
    snapshot() {
      // One that takes long to answer is not asked again meanwhile.
      asked ??= askForSnapshot();
      return Promise.race([asked, exited.then(() => undefined)]);
    },
    onScrape(scrape) {
      worker.on("message", (report: WorkerMessage) => {
        if ("scrape" in report) {
          // Where it fails, the worker gives up by itself.
          scrape().then(
            (text) => tell({ scraped: report.scrape, text }),
            () => {},
          );
        }
      });
    },
    stop(patience) {
      worker.process.kill("SIGTERM");
      const kill = setTimeout(() => worker.process.kill("SIGKILL"), patience);
      exited.then(() => clearTimeout(kill));
    },
  };
}

/** What a worker tells the process that started it. */
export type WorkerMessage =
  | { readonly listening: AddressInfo }
  /** Why it ends, in words for the operator. */
  | { readonly failure: string }
  /** What it has counted so far, as it was asked. */
  | { readonly snapshot: Snapshot }
  /** That it wants to know what all have counted, under a number of its own. */
  | { readonly scrape: number };

/** What a worker is told. */
export type PrimaryMessage =
  /** To tell what it has counted so far. */
  | { readonly ask: "snapshot" }
  /** What all have counted, which it has asked for under this number. */
  | { readonly scraped: number; readonly text: string };
