import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, createReadStream, openSync, type ReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, jest } from "@jest/globals";
import { useCleanup } from "../support/cleanup.js";
import {
  childrenOf,
  isRunning,
  latchkeyPath,
  runLatchkey,
  withTempFolder,
} from "../support/service/run-latchkey.js";
import { firstKeyFrame, listeningPattern } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import {
  count,
  firstKeys,
  getStatus,
  listeningLines,
  useSessions,
  useWorkers,
  watchWorker,
} from "./fixtures.js";

jest.setTimeout(2 * hangTimeout);

const run = promisify(execFile);
const stopAfterTest = useCleanup();
const openSession = useSessions();
const withService = useWorkers();

/** Sends an HTTP/1.1 request on a new TLS connection. */
async function getOverTls(url: string, key: string, ca: Buffer): Promise<string> {
  const tls = { ca, servername: "localhost", ALPNProtocols: ["http/1.1"] };
  const headers = { "svc-api-key": key };
  const outgoing = request(url, { ...tls, headers, agent: false }).end();
  const [response] = await once(outgoing, "response");
  response.resume();
  return `${response.httpVersion} ${response.statusCode}`;
}

describe("workers", () => {
  it("serve HTTP/2 and HTTP/1.1 over TLS", () =>
    withService(
      async ({ url, key }) => {
        const ca = await readFile("test/fixtures/localhost.crt");
        // Connections go to the workers in turn.
        for (let turn = 0; turn < 4; turn++) {
          expect(await getOverTls(`${url}/applications/key`, key, ca)).toBe("1.1 200");
        }
        const sessions = Array.from({ length: 4 }, () =>
          openSession(url, { ca, servername: "localhost" }),
        );
        await Promise.all(sessions.map((session) => watchWorker(session).firstStatus));
        for (const session of sessions) {
          const stream = session.request({ ":path": "/applications/key", "svc-api-key": key });
          const [headers] = await once(stream, "response");
          expect(headers[":status"]).toBe(200);
        }
      },
      { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" },
    ));
});

describe("a worker that exits", () => {
  it("is logged and replaced after SIGTERM, while the others serve", () =>
    withService(async (service) => {
      const [pid] = service.workers() as [number];
      process.kill(pid, "SIGTERM");
      const [line] = await service.until(/.*worker exited with code 0.*/);
      expect(JSON.parse(line)).toMatchObject({ level: "error", worker_pid: pid });
      expect(await getStatus(service.url, "/applications/key", service.key)).toBe(200);
      await until(async () => service.workers().length === 2);
      expect(service.workers()).not.toContain(pid);
      expect(count(service.output.stdout, listeningLines)).toBe(1);
    }));

  it("is replaced if all others exit too, and a new port is logged", () =>
    withService(async (service) => {
      for (const pid of service.workers()) {
        process.kill(pid, "SIGKILL");
      }
      await service.until(/(exited with SIGKILL.*){2}/s);
      const isServing = async () => {
        const [, url = ""] = [...service.output.stdout.matchAll(listeningLines)].at(-1) ?? [];
        const status = await getStatus(url, "/applications/key", service.key).catch(
          () => undefined,
        );
        return status === 200;
      };
      await until(isServing);
      expect(new Set(service.output.stderr.match(firstKeys)).size).toBe(1);
    }));
});

describe("graceful shutdown with workers", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("drains all streams and exits with 0 on %s", (signal) =>
    withService(async (service) => {
      const workers = service.workers();
      const sessions = Array.from({ length: 4 }, () => openSession(service.url));
      const watches = sessions.map(watchWorker);
      await Promise.all(watches.map(({ firstStatus }) => firstStatus));
      service.child.kill(signal);
      for (const { statuses } of watches) {
        expect(await statuses).toEqual([1, 2]);
      }
      for (const session of sessions) {
        session.close();
      }
      expect(await service.ended()).toBe(0);
      expect(workers.filter(isRunning)).toEqual([]);
      const { stdout, stderr } = service.output;
      expect(stderr.replace(firstKeyFrame, "")).toBe("");
      expect(count(stdout, /"msg":"stopping on /g)).toBe(1);
      expect(count(stdout, /"msg":"stopped"/g)).toBe(1);
      expect(stdout).not.toContain("worker exited");
    }),
  );

  it("exits with 0 during startup", () =>
    withTempFolder(async (DATA_DIR) => {
      const service = runLatchkey(["serve"], { DATA_DIR, PORT: "0", WORKERS: "2" });
      stopAfterTest(() => service.child.kill("SIGKILL"));
      await until(async () => childrenOf(service.child.pid as number).length === 2);
      service.child.kill("SIGTERM");
      expect(await service.ended()).toBe(0);
      expect(service.output.stderr.replace(firstKeyFrame, "")).toBe("");
    }));

  it("leaves no worker behind after SIGKILL", () =>
    withService(async (service) => {
      const workers = service.workers();
      service.child.kill("SIGKILL");
      await service.ended();
      await until(async () => !workers.some(isRunning));
    }));
});

describe("the combined log", () => {
  /** A pipe that is read only on demand, so that writes fill it. */
  async function openPipe(folder: string): Promise<{ fd: number; stream: ReadStream }> {
    const path = join(folder, "pipe");
    await run("mkfifo", [path]);
    const fd = openSync(path, constants.O_RDWR);
    stopAfterTest(() => closeSync(fd));
    return { fd, stream: createReadStream(path, { encoding: "utf8" }) };
  }

  it("has whole lines even if they are long and the reader is slow", () =>
    withTempFolder(async (folder) => {
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
        stdio: ["ignore", fd, "ignore"],
      });
      stopAfterTest(() => child.kill("SIGKILL"));
      await until(async () => listeningPattern.test(text));
      const [, url = ""] = listeningPattern.exec(text) ?? [];
      stream.pause();
      const total = 600;
      const paths = Array.from(
        { length: total },
        (_, at) => `/${at}/${"none/".repeat((at % 20) * 100)}`,
      );
      await Promise.all(paths.map((path) => getStatus(url, path, "")));
      stream.resume();
      child.kill("SIGTERM");
      await once(child, "exit");
      await until(async () => text.includes('"msg":"stopped"'));
      stream.destroy();

      const lines = text.trimEnd().split("\n");
      const entries = lines.map((line) => JSON.parse(line));
      const numbers = entries.flatMap(({ path }) => (path ? [Number(path.split("/")[1])] : []));
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, at) => at));
    }));
});
