import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, createReadStream, openSync, type ReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../gen/latchkey/v1/access_service_pb.js";
import { backOff } from "../src/workers/back-off.js";
import { watchHealth } from "./support/health-watch.js";
import { type LatchkeyProcess, latchkeyPath, runLatchkey, withFolder } from "./support/process.js";
import { firstKeyPattern, listeningLine, useServices } from "./support/service-process.js";
import { useStops } from "./support/stops.js";
import { until } from "./support/until.js";

const run = promisify(execFile);
const patience = 20_000;
const stopAfterTest = useStops();
const start = useServices();
const everyListeningLine = new RegExp(listeningLine, "g");
const everyFirstKey = new RegExp(firstKeyPattern, "g");

interface Service extends LatchkeyProcess {
  readonly url: string;
  readonly key: string;
  /** The processes that serve. */
  workers(): Promise<number[]>;
}

/** Gives a test a service of two workers on an empty folder. */
function withService(
  use: (service: Service, DATA_DIR: string) => Promise<void>,
  environment: Record<string, string> = {},
): Promise<void> {
  return withFolder(async (DATA_DIR) => {
    const { url, firstKey: key, process } = await start({ DATA_DIR, WORKERS: "2", ...environment });
    const workers = () => childrenOf(process.child.pid);
    await use({ ...process, url, key, workers }, DATA_DIR);
  });
}

async function childrenOf(parent: number | undefined): Promise<number[]> {
  const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid="]);
  const rows = stdout.trim().split("\n");
  return rows
    .map((row) => row.trim().split(/\s+/).map(Number))
    .flatMap(([pid = 0, ppid]) => (ppid === parent ? [pid] : []));
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Over a connection of its own. */
function ask(url: string, path: string, key: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "SVC-API-KEY": key };
    get(`${url}${path}`, { headers, agent: new Agent() }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}

function askManyTimes({ url, key }: Service): Promise<(number | undefined)[]> {
  return Promise.all(Array.from({ length: 20 }, () => ask(url, "/applications/key", key)));
}

function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

function openSession(url: string, options = {}): ClientHttp2Session {
  const session = connect(url, options);
  stopAfterTest(() => session.destroy());
  return session;
}

/** Watches the health of the worker that has this connection; resolves with the statuses it told when the stream ends. */
function watchWorker(session: ClientHttp2Session) {
  const stream = watchHealth(session);
  const statuses: number[] = [];
  stream.on("data", (frame: Buffer) => statuses.push(frame.at(-1) ?? 0));
  return { told: once(stream, "data"), statuses: once(stream, "end").then(() => statuses) };
}

describe("workers", () => {
  it("share one port and one key, and tell once where they are", () =>
    withService(async (service) => {
      expect(await service.workers()).toHaveLength(2);
      expect(new Set(await askManyTimes(service))).toEqual(new Set([200]));
      const { stdout } = service.output;
      expect(count(stdout, everyFirstKey)).toBe(2);
      expect(new Set(stdout.match(everyFirstKey)).size).toBe(1);
      expect(count(stdout, everyListeningLine)).toBe(1);
    }));

  it("take a key that is made beside them at once", () =>
    withService(async (service, DATA_DIR) => {
      const { PATH = "" } = process.env;
      const env = { PATH, DATA_DIR };
      const { stdout } = await run(process.execPath, [latchkeyPath, "bootstrap", "--json"], {
        env,
      });
      const answers = await askManyTimes({ ...service, key: JSON.parse(stdout).key });
      expect(new Set(answers)).toEqual(new Set([200]));
    }));

  it("serve HTTP/2 and HTTP/1.1 over TLS", () =>
    withService(
      async ({ url, key }) => {
        const ca = await readFile("test/fixtures/localhost.crt");
        const address = url.replace("127.0.0.1", "localhost");
        for (const protocol of ["h2", "h2", "http/1.1", "http/1.1"]) {
          const flag = protocol === "h2" ? "--http2" : "--http1.1";
          const caPath = ["--cacert", "test/fixtures/localhost.crt"];
          const { stdout } = await run("curl", [
            ...["-s", flag, ...caPath, "-H", `SVC-API-KEY: ${key}`],
            ...["-w", "%{http_version} %{http_code}", "-o", "/dev/null"],
            `${address}/applications/key`,
          ]);
          expect(stdout).toBe(protocol === "h2" ? "2 200" : "1.1 200");
        }
        const sessions = Array.from({ length: 4 }, () => openSession(address, { ca }));
        await Promise.all(sessions.map((session) => watchWorker(session).told));
      },
      {
        HOST: "localhost",
        TLS_CERT: "test/fixtures/localhost.crt",
        TLS_KEY: "test/fixtures/localhost.key",
      },
    ));

  it("tell each other's watchers of changes", () =>
    withService(async ({ url: baseUrl, key }) => {
      const headers = { "SVC-API-KEY": key };
      // Connections go to the workers in turn, so each worker has some.
      const watchers = Array.from({ length: 4 }, () => {
        const end = new AbortController();
        stopAfterTest(() => end.abort());
        const { watchCredentials } = createClient(AccessService, createGrpcTransport({ baseUrl }));
        const messages = watchCredentials({}, { headers, signal: end.signal });
        return messages[Symbol.asyncIterator]();
      });
      await Promise.all(watchers.map((watcher) => watcher.next()));

      const body = JSON.stringify({
        name: "Short-lived",
        type: "private",
        permissions: ["token:read"],
      });
      const json = { ...headers, "content-type": "application/json" };
      const made = await fetch(`${baseUrl}/applications`, { method: "POST", headers: json, body });
      const { id } = (await made.json()) as { id: string };
      await fetch(`${baseUrl}/applications/${id}`, { method: "DELETE", headers });

      for (const watcher of watchers) {
        let changes: { kind: string; applicationId: string }[] = [];
        while (changes.length === 0) {
          ({ changes } = (await watcher.next()).value);
        }
        expect(changes).toMatchObject([{ kind: "deleted", applicationId: id }]);
      }
    }));
});

describe("a worker that dies", () => {
  it.each([
    ["SIGKILL", "SIGKILL"],
    ["SIGTERM", "exit code 0"],
  ])("by %s is told of in the log and replaced, while the others serve", (signal, end) =>
    withService(async (service) => {
      const before = await service.workers();
      const [victim = 0] = before;
      process.kill(victim, signal);
      const [line] = await service.until(new RegExp(`.*a worker ended with ${end}.*`));
      expect(JSON.parse(line)).toMatchObject({ level: 50, worker_pid: victim });
      expect(await ask(service.url, "/applications/key", service.key)).toBe(200);
      await until(async () => (await service.workers()).length === 2, patience);
      expect(await service.workers()).not.toContain(victim);
      expect(count(service.output.stdout, everyListeningLine)).toBe(1);
    }),
  );

  it("with all others is replaced too, and the service tells where it is where that has changed", () =>
    withService(async (service) => {
      for (const pid of await service.workers()) {
        process.kill(pid, "SIGKILL");
      }
      await service.until(/(ended with SIGKILL.*){2}/s);
      const answers = async () => {
        const [, url = ""] = [...service.output.stdout.matchAll(everyListeningLine)].at(-1) ?? [];
        const status = await ask(url, "/applications/key", service.key).catch(() => undefined);
        return status === 200;
      };
      await until(answers, patience);
      expect(new Set(service.output.stdout.match(everyFirstKey)).size).toBe(1);
    }));

  it("is replaced later each time, up to a limit, until one has lived", () => {
    const waits = [0];
    for (let round = 0; round < 10; round++) {
      waits.push(backOff(5, waits.at(-1)));
    }
    expect(waits).toEqual([0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    expect(backOff(30_000, 10_000)).toBe(100);
  });
});

describe("a service of workers that is told to stop", () => {
  const ways: [how: string, stop: (pid: number, workers: number[]) => void][] = [
    ["SIGTERM", (pid) => process.kill(pid, "SIGTERM")],
    ["SIGINT", (pid) => process.kill(pid, "SIGINT")],
    [
      "a signal to each process, twice",
      (pid, workers) => {
        for (const each of [pid, ...workers, pid, ...workers]) {
          process.kill(each, "SIGINT");
        }
      },
    ],
  ];

  it.each(ways)("by %s says goodbye to all its streams and ends with 0", (_how, stop) =>
    withService(async (service) => {
      const workers = await service.workers();
      const sessions = Array.from({ length: 4 }, () => openSession(service.url));
      const watches = sessions.map(watchWorker);
      await Promise.all(watches.map(({ told }) => told));
      stop(service.child.pid as number, workers);
      for (const { statuses } of watches) {
        expect(await statuses).toEqual([1, 2]);
      }
      for (const session of sessions) {
        session.close();
      }
      expect(await service.ended()).toBe(0);
      expect(workers.filter(isRunning)).toEqual([]);
      const { stdout, stderr } = service.output;
      expect(stderr).toBe("");
      expect(count(stdout, /"msg":"stopping on /g)).toBe(1);
      expect(count(stdout, /"msg":"stopped"/g)).toBe(1);
      expect(stdout).not.toContain("a worker ended");
    }),
  );

  it("while it starts ends with 0", () =>
    withFolder(async (DATA_DIR) => {
      const service = runLatchkey(["serve"], { DATA_DIR, PORT: "0", WORKERS: "2" });
      stopAfterTest(() => service.child.kill("SIGKILL"));
      await until(async () => (await childrenOf(service.child.pid)).length === 2, patience);
      service.child.kill("SIGTERM");
      expect(await service.ended()).toBe(0);
      expect(service.output.stderr).toBe("");
    }));

  it("by SIGKILL leaves no worker behind", () =>
    withService(async (service) => {
      const workers = await service.workers();
      service.child.kill("SIGKILL");
      await service.ended();
      await until(async () => !workers.some(isRunning), patience);
    }));
});

describe("the log of several workers", () => {
  /** A pipe that nobody reads unless told to: what is written there waits, and fills it. */
  async function openPipe(folder: string): Promise<{ fd: number; stream: ReadStream }> {
    const path = join(folder, "pipe");
    await run("mkfifo", [path]);
    const fd = openSync(path, constants.O_RDWR);
    stopAfterTest(() => closeSync(fd));
    return { fd, stream: createReadStream(path, { encoding: "utf8" }) };
  }

  it("has whole lines, also where they are long and nobody reads them for a while", () =>
    withFolder(async (folder) => {
      const { fd, stream } = await openPipe(folder);
      let text = "";
      stream.on("data", (part) => {
        text += part;
      });
      const { PATH = "" } = process.env;
      const env = {
        PATH,
        HOST: "127.0.0.1",
        PORT: "0",
        WORKERS: "2",
        DATA_DIR: join(folder, "data"),
      };
      const child = spawn(process.execPath, [latchkeyPath, "serve"], {
        env,
        stdio: ["ignore", fd, "inherit"],
      });
      stopAfterTest(() => child.kill("SIGKILL"));
      await until(async () => listeningLine.test(text), patience);
      const [, url = ""] = listeningLine.exec(text) ?? [];
      stream.pause();
      const total = 600;
      const paths = Array.from(
        { length: total },
        (_, at) => `/${at}/${"none/".repeat((at % 20) * 100)}`,
      );
      await Promise.all(paths.map((path) => ask(url, path, "")));
      stream.resume();
      child.kill("SIGTERM");
      await once(child, "exit");
      await until(async () => text.includes('"msg":"stopped"'), patience);
      stream.destroy();

      const lines = text.split("\n").filter((line) => line.startsWith("{"));
      const entries = lines.map((line) => JSON.parse(line));
      const numbers = entries.flatMap(({ path }) => (path ? [Number(path.split("/")[1])] : []));
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, at) => at));
      const [banner = "", ...rest] = text.split(/(?=\{)/);
      expect(banner).toContain("lk_mgt_");
      expect(rest.join("")).toBe(`${lines.join("\n")}\n`);
    }));
});
