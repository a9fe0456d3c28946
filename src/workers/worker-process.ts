import cluster from "node:cluster";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import type { Report } from "./report.js";

/** A worker, as seen from the process that started it. */
export interface WorkerProcess {
  readonly pid: number | undefined;
  /** What it writes to its stdout. */
  readonly output: Readable;
  /** Resolves with where it listens, and rejects with why it ended where it never did. */
  readonly listening: Promise<AddressInfo>;
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<string>;
  /** Lets it finish its calls, and kills it where it has not ended after `patience` milliseconds. */
  stop(patience: number): void;
}

/** Starts a process that runs the same program with the same flags and environment. */
export function startWorker(): WorkerProcess {
  cluster.setupPrimary({ stdio: ["inherit", "pipe", "inherit", "ipc"] });
  const worker = cluster.fork();
  let failure: string | undefined;
  const ended = new Promise<string>((resolve) => {
    worker.on("exit", (code, signal) => {
      resolve(failure ?? `a worker ended with ${signal || `exit code ${code}`}`);
    });
    worker.on("error", (error) => {
      // One that is running meets errors too, as when it dies while a
      // connection is handed to it; that it has ended is told all the same.
      if (worker.process.pid === undefined) {
        resolve(`a worker could not be started: ${error.message}`);
      }
    });
  });
  const listening = new Promise<AddressInfo>((resolve, reject) => {
    worker.on("message", (report: Report) => {
      if ("failure" in report) {
        failure = report.failure;
      } else {
        resolve(report.listening);
      }
    });
    ended.then((reason) => reject(new Error(reason)));
  });
  // Whoever is interested asks for it.
  listening.catch(() => {});

  return {
    pid: worker.process.pid,
    output: worker.process.stdout as Readable,
    listening,
    ended,
    stop(patience) {
      worker.process.kill("SIGTERM");
      const kill = setTimeout(() => worker.process.kill("SIGKILL"), patience);
      ended.then(() => clearTimeout(kill));
    },
  };
}
