import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { killWithParent } from "./child-process.js";
import { type LatchkeyProcess, type RunOptions, runLatchkey } from "./process.js";

/** Starts the service on a folder of its own before the tests of a file or a part of it, and ends it after them. */
export function useService(
  environment: Environment | (() => Promise<Environment>) = {},
): ServiceProcess {
  let folder: string;
  let service: ServiceProcess;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-service-"));
    const settings = typeof environment === "function" ? await environment() : environment;
    service = await startService({ DATA_DIR: folder, ...settings });
  });

  afterAll(async () => {
    service.process.child.kill("SIGTERM");
    await service.process.ended();
    await rm(folder, { recursive: true, force: true });
  });

  return {
    get url() {
      return service.url;
    },
    get port() {
      return service.port;
    },
    get firstKey() {
      return service.firstKey;
    },
    get process() {
      return service.process;
    },
  };
}

/** The service in a process of its own, which listens. */
export interface ServiceProcess {
  readonly url: string;
  readonly port: number;
  /** Shown by the first start on an embedded store, and empty with every other. */
  readonly firstKey: string;
  readonly process: LatchkeyProcess;
}

type Environment = Readonly<Record<string, string>>;

/** What the service says when it listens. */
export const listeningPattern = /listening at (https?:\/\/[^"]+)"/;
export const firstKeyPattern = /lk_mgt_[A-Za-z0-9]+/;

/** Starts the service, on a port that is free where none is named, and comes back when it listens. */
export function startService(
  environment: Environment,
  options?: RunOptions,
): Promise<ServiceProcess> {
  return begin(environment, options).listening;
}

/** Starts services, and kills those that outlive their test. */
export function useServices(): typeof startService {
  let running: LatchkeyProcess[] = [];

  afterEach(() => {
    for (const { child } of running) {
      child.kill("SIGKILL");
    }
    running = [];
  });

  return (environment, options) => {
    const { process, listening } = begin(environment, options);
    running.push(process);
    return listening;
  };
}

function begin(environment: Environment, options?: RunOptions) {
  const { DATA_DIR } = environment;
  const isFirst = DATA_DIR !== undefined && !existsSync(join(DATA_DIR, "data.mdb"));
  const process = runLatchkey(["serve"], { PORT: "0", ...environment }, options);
  killWithParent(process.child);
  return { process, listening: whenListening(process, isFirst) };
}

async function whenListening(process: LatchkeyProcess, isFirst: boolean): Promise<ServiceProcess> {
  const [, url = ""] = await process.until(listeningPattern);
  const [firstKey] = isFirst ? await process.until(firstKeyPattern) : [""];
  return { url, port: Number(new URL(url).port), firstKey, process };
}
