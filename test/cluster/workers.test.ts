import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, jest } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { useCleanup } from "../support/cleanup.js";
import { isRunning, latchkeyPath } from "../support/service/run-latchkey.js";
import { firstKeyFrame } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import {
  count,
  firstKeys,
  getStatus,
  getStatusManyTimes,
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

describe("workers", () => {
  it("share one port, key and store, and notify watchers on every worker", () =>
    withService(async ({ url, key, workers, output }, DATA_DIR) => {
      expect(workers()).toHaveLength(2);
      expect(new Set(await getStatusManyTimes(url, key))).toEqual(new Set([200]));
      const { stdout, stderr } = output;
      expect(count(stderr, firstKeys)).toBe(1);
      expect(count(stdout, listeningLines)).toBe(1);

      const { PATH = "" } = process.env;
      const bootstrap = [latchkeyPath, "bootstrap", "--json"];
      const bootstrapped = await run(process.execPath, bootstrap, { env: { PATH, DATA_DIR } });
      const statuses = await getStatusManyTimes(url, JSON.parse(bootstrapped.stdout).key);
      expect(new Set(statuses)).toEqual(new Set([200]));
      await expectAllNotified(url, key);
    }));

  /** Checks that the watchers on every worker are notified of a change. */
  async function expectAllNotified(baseUrl: string, key: string): Promise<void> {
    const headers = { "SVC-API-KEY": key };
    // Connections go to the workers in turn, so each worker has some.
    const watchers = Array.from({ length: 4 }, () => {
      const abort = new AbortController();
      stopAfterTest(() => abort.abort());
      const { watchCredentials } = createClient(AccessService, createGrpcTransport({ baseUrl }));
      const messages = watchCredentials({}, { headers, signal: abort.signal });
      return messages[Symbol.asyncIterator]();
    });
    await Promise.all(watchers.map((watcher) => watcher.next()));

    const body = JSON.stringify({
      name: "Short-lived",
      type: "private",
      permissions: ["token:read"],
    });
    const json = { ...headers, "content-type": "application/json" };
    const created = await fetch(`${baseUrl}/applications`, { method: "POST", headers: json, body });
    const { id } = (await created.json()) as { id: string };
    await fetch(`${baseUrl}/applications/${id}`, { method: "DELETE", headers });

    for (const watcher of watchers) {
      let changes: { kind: string; applicationId: string }[] = [];
      while (changes.length === 0) {
        ({ changes } = (await watcher.next()).value);
      }
      expect(changes).toMatchObject([{ kind: "deleted", applicationId: id }]);
    }
  }
});

describe("a worker that exits", () => {
  it("is logged and replaced, while the others serve", () =>
    withService(async (service) => {
      const [pid] = service.workers() as [number];
      process.kill(pid, "SIGKILL");
      const [line] = await service.until(/.*worker exited with SIGKILL.*/);
      expect(JSON.parse(line)).toMatchObject({ level: "error", worker_pid: pid });
      expect(await getStatus(service.url, "/applications/key", service.key)).toBe(200);
      await until(async () => service.workers().length === 2);
      expect(service.workers()).not.toContain(pid);
      expect(count(service.output.stdout, listeningLines)).toBe(1);
    }));
});

describe("graceful shutdown with workers", () => {
  it("drains all streams and exits with 0 after repeated signals to every process", () =>
    withService(async (service) => {
      const workers = service.workers();
      const sessions = Array.from({ length: 4 }, () => openSession(service.url));
      const watches = sessions.map(watchWorker);
      await Promise.all(watches.map(({ firstStatus }) => firstStatus));
      const all = [service.child.pid as number, ...workers];
      for (const pid of [...all, ...all]) {
        process.kill(pid, "SIGINT");
      }
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
    }));
});
