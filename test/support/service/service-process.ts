import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { killWithParent } from "./child-process.js";
import { type CapturedProcess, type RunOptions, runLatchkey } from "./run-latchkey.js";

/** A service with its own store, in which there is a first key. */
export interface ServiceWithStore extends ServiceProcess {
  /** Creates a tenant and returns a key with all permissions. */
  createTenant(): Promise<string>;
}

/** Starts the service with a new data folder before the tests of a block, and stops it after them. */
export function useService(
  environment: Environment | (() => Promise<Environment>) = {},
): ServiceWithStore {
  let folder: string;
  let settings: Environment;
  let service: ServiceProcess;
  let firstKey: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-service-"));
    const given = typeof environment === "function" ? await environment() : environment;
    settings = { DATA_DIR: folder, ...given };
    service = await startService(settings);
    firstKey = service.firstKey || (await bootstrapKey(settings));
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
      return firstKey;
    },
    get process() {
      return service.process;
    },
    createTenant: () => bootstrapKey(settings),
  };
}

/** Creates a tenant in a store and returns a key with all permissions. */
export async function bootstrapKey(environment: Environment): Promise<string> {
  const run = runLatchkey(["bootstrap", "--json"], environment);
  const code = await run.ended();
  if (code !== 0) {
    throw new Error(`bootstrap exited with ${code}: ${run.output.stderr}`);
  }
  return JSON.parse(run.output.stdout).key;
}

/** The service in a separate process. */
export interface ServiceProcess {
  readonly url: string;
  readonly port: number;
  /** Printed by the first start on an embedded store, otherwise empty. */
  readonly firstKey: string;
  readonly process: CapturedProcess;
}

type Environment = Readonly<Record<string, string>>;

/** Matches the log line that the service is listening. */
export const listeningPattern = /listening at (https?:\/\/[^"]+)"/;
export const firstKeyPattern = /lk_mgt_[A-Za-z0-9]+/;
/** Matches everything that the first start prints on stderr. */
export const firstKeyFrame = /\n {2}.*?╯\n\n/s;

/** Starts the service, by default on a free port. Resolves when it is listening. */
export function startService(
  environment: Environment,
  options?: RunOptions,
): Promise<ServiceProcess> {
  return spawnService(environment, options).listening;
}

/** Starts services and kills those still running after their test. */
export function useServices(): typeof startService {
  let running: CapturedProcess[] = [];

  afterEach(() => {
    for (const { child } of running) {
      child.kill("SIGKILL");
    }
    running = [];
  });

  return (environment, options) => {
    const { process, listening } = spawnService(environment, options);
    running.push(process);
    return listening;
  };
}

function spawnService(environment: Environment, options?: RunOptions) {
  const { DATA_DIR, MONGODB_URI } = environment;
  const isEmbedded = DATA_DIR !== undefined && MONGODB_URI === undefined;
  const isFirstStart = isEmbedded && !existsSync(join(DATA_DIR, "data.mdb"));
  const process = runLatchkey(["serve"], { PORT: "0", ...environment }, options);
  killWithParent(process.child, { group: options?.detached ?? false });
  return { process, listening: waitUntilListening(process, isFirstStart) };
}

async function waitUntilListening(
  process: CapturedProcess,
  isFirstStart: boolean,
): Promise<ServiceProcess> {
  const [, url = ""] = await process.until(listeningPattern);
  const [firstKey] = isFirstStart ? await process.until(firstKeyPattern) : [""];
  return { url, port: Number(new URL(url).port), firstKey, process };
}
