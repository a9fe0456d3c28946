import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { stop, stopOnExit } from "./child-processes.js";
import { pinCommand } from "./processes.js";

/** A server in a separate process. */
export interface Server {
  readonly port: number;
  readonly pid: number;
  /** Set if the CPU time of its database is measured, too. */
  readonly databasePid?: number | undefined;
  /** Milliseconds from the start until it was ready. */
  readonly startupMs: number;
  stop(): Promise<void>;
}

/** The environment variables that select the store of Latchkey. */
export type StoreEnvironment = Readonly<Record<string, string>>;

export interface LatchkeyOptions {
  readonly cores: string | undefined;
  /** The path of Node.js, by default the one that runs the benchmark. */
  readonly node?: string;
  /** The number of worker processes, 1 by default. */
  readonly workers?: number;
  readonly nodeOptions?: readonly string[];
  /** The folder of the built Latchkey, by default this one. */
  readonly folder?: string;
}

const host = "127.0.0.1";
const startTimeoutMs = 30_000;

/** The folder of this Latchkey. */
export const ownFolder = fileURLToPath(new URL("..", import.meta.url));

const mainOf = (folder: string) => join(folder, "dist/src/main.js");

export function addressOf({ port }: Pick<Server, "port">): string {
  return `http://${host}:${port}`;
}

/** Starts Latchkey as deployed: the built files, default settings and logging on. */
export function startLatchkey(store: StoreEnvironment, options: LatchkeyOptions): Promise<Server> {
  const { cores, node = process.execPath, workers = 1, nodeOptions = [] } = options;
  return start({
    node,
    program: [...nodeOptions, mainOf(options.folder ?? ownFolder), "serve"],
    settings: { ...store, WORKERS: String(workers) },
    isReady: isLatchkeyReady,
    probeInterval: 2,
    cores,
  });
}

/** Creates the first key of a store. */
export async function bootstrap(
  store: StoreEnvironment,
  folder = ownFolder,
): Promise<Bootstrapped> {
  const running = promisify(execFile)(process.execPath, [mainOf(folder), "bootstrap", "--json"], {
    env: createEnvironment(store),
  });
  stopOnExit(running.child);
  return JSON.parse((await running).stdout);
}

/** The first application of a store. */
export interface Bootstrapped {
  readonly tenant_id: string;
  readonly application_id: string;
  readonly key: string;
}

/** Starts a baseline server. It is ready once it accepts connections. */
export async function startBaseline(
  name: string,
  settings: StoreEnvironment,
  cores: string | undefined,
): Promise<Server> {
  return start({
    node: process.execPath,
    program: [await compileBaseline(name)],
    settings,
    isReady: acceptsConnections,
    probeInterval: 50,
    cores,
  });
}

interface Start {
  readonly node: string;
  readonly program: readonly string[];
  readonly settings: StoreEnvironment;
  isReady(port: number): Promise<boolean>;
  /** In milliseconds. */
  readonly probeInterval: number;
  readonly cores: string | undefined;
}

async function start(options: Start): Promise<Server> {
  const { node, program, settings, isReady, probeInterval, cores } = options;
  const port = await freePort();
  const started = performance.now();
  const child = spawn(...pinCommand(cores, node, program), {
    env: createEnvironment({ ...highSessionQuota, ...settings, HOST: host, PORT: String(port) }),
    // The log is written as in production, but not to the disk whose syncs are measured.
    stdio: ["ignore", "ignore", "pipe"],
  });
  stopOnExit(child);
  let stderr = "";
  child.stderr.on("data", (bytes) => {
    stderr = `${stderr}${bytes}`.slice(-2_000);
  });
  const deadline = started + startTimeoutMs;
  while (!(await isReady(port))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`${program.join(" ")} did not start. ${stderr}`);
    }
    await new Promise((resolve) => setTimeout(resolve, probeInterval));
  }
  const startupMs = performance.now() - started;
  return { port, pid: child.pid as number, startupMs, stop: () => stop(child) };
}

/** A load opens more sessions of one application, from one address, than the defaults allow. */
const highSessionQuota = {
  SESSION_QUOTA: "1000000",
  UNAUTHORIZED_SESSION_QUOTA: "1000000",
  RATE_LIMIT_SESSIONS: "off",
  // An address of a proxy has no share of its own.
  TRUSTED_PROXIES: "127.0.0.1",
};

/** Does not inherit the variables of this shell. */
function createEnvironment(settings: StoreEnvironment): StoreEnvironment {
  return { PATH: process.env.PATH ?? "", ...settings };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) {
    throw new Error("no free port");
  }
  return address.port;
}

function isLatchkeyReady(port: number): Promise<boolean> {
  return fetch(`http://${host}:${port}/readyz`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}

function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect(port, host);
  return once(socket, "connect").then(
    () => {
      socket.destroy();
      return true;
    },
    () => false,
  );
}

/** Inside dist/, so that the same packages are resolved. */
const compiledFolder = fileURLToPath(new URL("../dist/bench/", import.meta.url));

/**
 * Compiles a baseline and returns its path. Under tsx, which wraps functions,
 * it would be slower than the built Latchkey.
 */
async function compileBaseline(name: string): Promise<string> {
  const file = `${compiledFolder}${name}.js`;
  await build({
    entryPoints: [fileURLToPath(new URL(`baselines/${name}.ts`, import.meta.url))],
    outfile: file,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
  return file;
}

/** Imports a built module of Latchkey, because tsx makes functions slower. */
export function loadBuilt<Module>(path: string): Promise<Module> {
  return import(new URL(`../dist/src/${path}`, import.meta.url).href);
}
