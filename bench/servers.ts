import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { endWithBench, stop } from "./child-processes.js";
import { pinned } from "./processes.js";

/** A server in a process of its own. */
export interface Server {
  readonly port: number;
  readonly pid: number;
  /** Milliseconds from its start until it was ready. */
  readonly readyAfter: number;
  stop(): Promise<void>;
}

/** The environment that tells Latchkey which store to use. */
export type StoreEnvironment = Readonly<Record<string, string>>;

interface LatchkeyOptions {
  readonly cores: string | undefined;
  /** How many processes answer requests: one, where nothing else is measured. */
  readonly workers?: number;
  /** For Node itself. */
  readonly nodeOptions?: readonly string[];
}

const host = "127.0.0.1";
const startLimit = 30_000;
const latchkey = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));

export function addressOf({ port }: Server): string {
  return `http://${host}:${port}`;
}

/** Starts Latchkey as it is deployed: built, default settings, log switched on. */
export function startLatchkey(
  store: StoreEnvironment,
  { cores, workers = 1, nodeOptions = [] }: LatchkeyOptions,
): Promise<Server> {
  return start({
    program: [...nodeOptions, latchkey, "serve"],
    settings: { ...store, WORKERS: String(workers) },
    isReady: answersWell,
    probeInterval: 2,
    cores,
  });
}

/** Makes the first key of a store, as an operator does. */
export async function bootstrap(store: StoreEnvironment): Promise<Bootstrapped> {
  const running = promisify(execFile)(process.execPath, [latchkey, "bootstrap", "--json"], {
    env: environment(store),
  });
  endWithBench(running.child);
  return JSON.parse((await running).stdout);
}

/** The first application of a store. */
export interface Bootstrapped {
  readonly tenant_id: string;
  readonly application_id: string;
  readonly key: string;
}

/** Starts a server of the contenders, which listens when it is ready. */
export async function startContender(
  name: string,
  settings: StoreEnvironment,
  cores: string | undefined,
): Promise<Server> {
  const program = [await compileContender(name)];
  return start({ program, settings, isReady: accepts, probeInterval: 50, cores });
}

interface Start {
  readonly program: readonly string[];
  readonly settings: StoreEnvironment;
  isReady(port: number): Promise<boolean>;
  /** In milliseconds. */
  readonly probeInterval: number;
  readonly cores: string | undefined;
}

async function start({ program, settings, isReady, probeInterval, cores }: Start): Promise<Server> {
  const port = await freePort();
  const started = performance.now();
  const child = spawn(...pinned(cores, process.execPath, program), {
    env: environment({ ...manySessions, ...settings, HOST: host, PORT: String(port) }),
    // The log is written as in production, but not to the disk whose syncs are measured.
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithBench(child);
  let complaint = "";
  child.stderr.on("data", (bytes) => {
    complaint = `${complaint}${bytes}`.slice(-2_000);
  });
  const deadline = started + startLimit;
  while (!(await isReady(port))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`${program.join(" ")} does not start. ${complaint}`);
    }
    await new Promise((resolve) => setTimeout(resolve, probeInterval));
  }
  const readyAfter = performance.now() - started;
  return { port, pid: child.pid as number, readyAfter, stop: () => stop(child) };
}

/** A load opens more sessions of one application than any would have. */
const manySessions = { SESSION_QUOTA: "1000000" };

/** Nothing that is set for this shell may reach the servers, only what is said here. */
function environment(settings: StoreEnvironment): StoreEnvironment {
  return { PATH: process.env.PATH ?? "", ...settings };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) {
    throw new Error("there is no free port");
  }
  return address.port;
}

/** Whether Latchkey says that it is ready. */
function answersWell(port: number): Promise<boolean> {
  return fetch(`http://${host}:${port}/readyz`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}

function accepts(port: number): Promise<boolean> {
  const socket = connect(port, host);
  return once(socket, "connect").then(
    () => {
      socket.destroy();
      return true;
    },
    () => false,
  );
}

/** In the folder of the build, so that it finds the same packages. */
const folder = fileURLToPath(new URL("../dist/bench/", import.meta.url));

/**
 * Compiles a contender as Latchkey itself is compiled, and answers where it is:
 * what tsx makes of the sources does more for each function, which would
 * flatter us.
 */
export async function compileContender(name: string): Promise<string> {
  const file = `${folder}${name}.js`;
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

/**
 * Loads a module of Latchkey as it is deployed, for what is measured inside of
 * a process of the benchmark: what tsx makes of the sources does more for each
 * function.
 */
export function loadBuilt<Module>(path: string): Promise<Module> {
  return import(new URL(`../dist/src/${path}`, import.meta.url).href);
}
