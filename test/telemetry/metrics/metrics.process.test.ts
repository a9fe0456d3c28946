import { once } from "node:events";
import { Agent, get } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, jest } from "@jest/globals";
import { useCleanup } from "../../support/cleanup.js";
import { isFullSuite } from "../../support/jest/suite.js";
import { type Exposition, parseExposition } from "../../support/service/exposition.js";
import {
  type CapturedProcess,
  childrenOf,
  runLatchkey,
  withTempFolder,
} from "../../support/service/run-latchkey.js";
import { firstKeyFrame, useServices } from "../../support/service/service-process.js";
import { hangTimeout, until } from "../../support/until.js";

const byKey = { method: "latchkey.v1.ApplicationService/GetApplicationByKey" };
jest.setTimeout(2 * hangTimeout);

const start = useServices();
const stopAfterTest = useCleanup();

interface Service extends CapturedProcess {
  readonly url: string;
  readonly key: string;
}

function withService(
  environment: Record<string, string>,
  use: (service: Service) => Promise<void>,
): Promise<void> {
  return withTempFolder(async (DATA_DIR) => {
    const { url, firstKey: key, process } = await start({ DATA_DIR, ...environment });
    await use({ ...process, url, key });
    process.child.kill("SIGTERM");
    expect(await process.ended()).toBe(0);
    expect(process.output.stderr.replace(firstKeyFrame, "")).toBe("");
  });
}

/** Uses a new connection, so that the workers alternate. */
async function request(url: string, key = ""): Promise<{ status: number; body: string }> {
  const request = get(url, { headers: { "SVC-API-KEY": key }, agent: new Agent() });
  const [response] = await once(request, "response");
  let body = "";
  for await (const chunk of response) {
    body += chunk;
  }
  return { status: response.statusCode, body };
}

async function callTimes(count: number, { url, key }: Service): Promise<void> {
  for (let call = 0; call < count; call++) {
    expect((await request(`${url}/applications/key`, key)).status).toBe(200);
  }
}

async function scrape(url: string): Promise<Exposition> {
  const { status, body } = await request(url);
  expect({ status, body }).toMatchObject({ status: 200 });
  return parseExposition(body);
}

describe("the metrics of two workers", () => {
  it("are summed by every worker and survive the exit of one", () =>
    withService({ WORKERS: "2" }, async (service) => {
      const metrics = `${service.url}/metrics`;
      const calls = async () => (await scrape(metrics)).sum("latchkey_requests_total", byKey);
      await callTimes(10, service);
      expect(await Promise.all([calls(), calls(), calls()])).toEqual([10, 10, 10]);
      const { sum } = await scrape(metrics);
      expect(sum("latchkey_request_duration_seconds_count", byKey)).toBe(10);
      expect([sum("latchkey_workers"), sum("latchkey_worker_restarts_total")]).toEqual([2, 0]);

      const [, workerPid] = /"worker_pid":(\d+)/.exec(await killWorker(service)) ?? [];
      expect(Number(workerPid)).toBeGreaterThan(0);
      const isReplaced = async () => (await scrape(metrics)).sum("latchkey_workers") === 2;
      await until(isReplaced);
      expect(await calls()).toBe(10);
      await callTimes(4, service);
      expect(await calls()).toBe(14);
      expect((await scrape(metrics)).sum("latchkey_worker_restarts_total")).toBe(1);
    }));
});

describe("METRICS_PORT", () => {
  it.each(isFullSuite ? ["1", "2"] : ["1"])(
    "is the only port that serves metrics, with WORKERS=%s",
    (WORKERS) => withService({ WORKERS, METRICS_PORT: "0" }, expectSeparatePort),
  );

  it("prevents the start if another program uses it", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    const { port } = blocker.address() as AddressInfo;
    await withTempFolder(async (DATA_DIR) => {
      const environment = { DATA_DIR, PORT: "0", METRICS_PORT: String(port) };
      const service = runLatchkey(["serve"], environment);
      stopAfterTest(() => service.child.kill("SIGKILL"));
      expect(await service.ended()).toBe(1);
      expect(service.output.stderr.replace(firstKeyFrame, "")).toBe(
        `latchkey: 127.0.0.1:${port} is already in use: stop the other program or set METRICS_PORT to another port\n`,
      );
    });
    blocker.close();
  });
});

async function expectSeparatePort(service: Service): Promise<void> {
  const [, metrics = ""] = await service.until(/metrics at (http:\/\/127\.0\.0\.1:\d+\/metrics)"/);
  await callTimes(4, service);
  expect((await scrape(metrics)).sum("latchkey_requests_total", byKey)).toBe(4);
  expect((await request(`${service.url}/metrics`)).status).toBe(404);
  expect((await request(metrics.replace(/metrics$/, "applications/key"), service.key)).status).toBe(
    404,
  );
}

/** Kills a worker and returns the log line about it. */
async function killWorker({ child, until }: Service): Promise<string> {
  const [worker] = childrenOf(child.pid as number) as [number];
  process.kill(worker, "SIGKILL");
  const [line] = await until(/.*worker exited with SIGKILL.*/);
  return line;
}
