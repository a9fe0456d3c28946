import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { endWithBench } from "./cleanup.js";
import { pinned } from "./cores.js";

/** A server in a process of its own. */
export interface Server {
  readonly port: number;
  readonly pid: number;
}

/** The environment that tells Latchkey which store to use. */
export type StoreEnvironment = Readonly<Record<string, string>>;

const host = "127.0.0.1";
const startLimit = 15_000;
const latchkey = pathOf("../dist/src/main.js");
const bareHttp = pathOf("contenders/bare-http.ts");

export function addressOf({ port }: Server): string {
  return `http://${host}:${port}`;
}

/** Starts Latchkey as it is deployed: built, default settings, log switched on. */
export function startLatchkey(store: StoreEnvironment, cores?: string): Promise<Server> {
  return start([latchkey, "serve"], store, "/readyz", cores);
}

/** Makes the first key of a store, as an operator does. */
export async function bootstrap(store: StoreEnvironment): Promise<string> {
  const running = promisify(execFile)(process.execPath, [latchkey, "bootstrap", "--json"], {
    env: environment(store),
  });
  endWithBench(running.child);
  return JSON.parse((await running).stdout).key;
}

/** Starts a bare `node:http` server that always answers with this body. */
export function startBareServer(body: string, cores?: string): Promise<Server> {
  return start(["--import", "tsx", bareHttp], { BODY: body }, "/", cores);
}

async function start(
  program: readonly string[],
  settings: StoreEnvironment,
  readyPath: string,
  cores: string | undefined,
): Promise<Server> {
  const port = await freePort();
  const child = spawn(...pinned(cores, process.execPath, program), {
    env: environment({ ...settings, HOST: host, PORT: String(port) }),
    // The log is written as in production, but not to the disk whose syncs are measured.
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithBench(child);
  let complaint = "";
  child.stderr.on("data", (bytes) => {
    complaint = `${complaint}${bytes}`.slice(-2_000);
  });
  const deadline = performance.now() + startLimit;
  while (!(await answers(port, readyPath))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`${program.join(" ")} does not start. ${complaint}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { port, pid: child.pid as number };
}

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

function answers(port: number, path: string): Promise<boolean> {
  return fetch(`http://${host}:${port}${path}`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
