import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { GatewayService } from "../../gen/latchkey/v1/gateway_service_pb.js";
import { OverviewService } from "../../gen/latchkey/v1/overview_service_pb.js";
import { type Network, parseNetwork } from "../../src/lib/networks.js";
import { createUntrustedForwarding } from "../../src/middleware/untrusted-forwarding.js";
import { send } from "../support/http/http.js";
import { startServer, type TestServer } from "../support/service/server.js";

const hour = 3_600_000;
const forwarded = { "x-forwarded-for": "203.0.113.7" };

function createMonitor() {
  const warnings: unknown[] = [];
  let calls = 0;
  let time = 0;
  const monitor = createUntrustedForwarding({
    trustedProxies: [parseNetwork("192.0.2.0/24") as Network],
    log: { warn: (fields: unknown) => warnings.push(fields) } as never,
    onCall: () => calls++,
    now: () => time,
  });
  return {
    warnings,
    calls: () => calls,
    isRecent: monitor.isRecent,
    advance: (milliseconds: number) => {
      time += milliseconds;
    },
    call: (
      address: string,
      headers: Record<string, string>,
      method = OverviewService.method.getOverview,
    ) => monitor.check({ method: method as never, peer: { address, headers } }),
  };
}

describe("forwarding headers", () => {
  it("from an untrusted peer are logged once per peer and counted each time", () => {
    const { call, calls, warnings } = createMonitor();
    call("198.51.100.1", forwarded);
    call("198.51.100.2", { forwarded: "for=203.0.113.7" });
    call("198.51.100.1", forwarded);
    call("198.51.100.2", forwarded);
    expect(calls()).toBe(4);
    expect(warnings).toEqual([{ peer: "198.51.100.1" }, { peer: "198.51.100.2" }]);
  });

  it("are logged for at most ten peers", () => {
    const { call, calls, warnings } = createMonitor();
    for (let peer = 1; peer <= 20; peer++) {
      call(`198.51.100.${peer}`, forwarded);
    }
    expect([calls(), warnings.length]).toEqual([20, 10]);
  });

  it("are recent for an hour", () => {
    const { call, isRecent, advance } = createMonitor();
    expect(isRecent()).toBe(false);
    call("198.51.100.1", forwarded);
    advance(hour - 1);
    expect(isRecent()).toBe(true);
    advance(1);
    expect(isRecent()).toBe(false);
  });

  it("are expected from trusted proxies, and from gateways", () => {
    const { call, calls, warnings } = createMonitor();
    call("192.0.2.9", forwarded);
    call("198.51.100.1", {});
    call("198.51.100.1", forwarded, GatewayService.method.forwardAuth as never);
    expect([calls(), warnings]).toEqual([0, []]);
  });
});

describe("a server behind a proxy that it does not trust", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer("lmdb");
  });

  afterAll(() => server?.close());

  it("reports it to management keys, in the log and in the metrics", async () => {
    const { key, createApplication } = await createTenant(server);
    const getOverview = async (key: string, headers = {}) => {
      const { body } = await send(server, "/overview", {
        headers: { "svc-api-key": key, ...headers },
      });
      return JSON.parse(body) as { untrusted_forwarding?: boolean };
    };
    const reader = await createApplication("private");
    expect((await getOverview(key)).untrusted_forwarding).toBeUndefined();
    expect((await getOverview(key, forwarded)).untrusted_forwarding).toBe(true);
    expect((await getOverview(key)).untrusted_forwarding).toBe(true);
    expect((await getOverview(reader, forwarded)).untrusted_forwarding).toBeUndefined();
    const logged = server.logs.filter(({ msg }) => String(msg).includes("TRUSTED_PROXIES"));
    expect(logged).toMatchObject([{ peer: "127.0.0.1" }]);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain("latchkey_untrusted_forwarding_total 2");
  });
});

async function createTenant(server: TestServer) {
  const { key } = await server.createTenant();
  const createApplication = async (type: string) => {
    const { body } = await send(server, "/applications", {
      method: "POST",
      headers: { "svc-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ name: type, type, permissions: ["application:read"] }),
    });
    return (JSON.parse(body) as { key: string }).key;
  };
  return { key, createApplication };
}
