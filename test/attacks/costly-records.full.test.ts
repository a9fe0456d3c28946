import { setMaxListeners } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import type { Api } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

const service = useAttackedService(noTimeouts);

/** Grants of nearly 64 KiB, which every application may have. */
const rules = Array.from({ length: 100 }, (_, index) => ({
  priority: index + 1,
  description: `${index} ${"x".repeat(430)}`,
  container: `/a/${index}/`,
  transform: "mask",
  permissions: ["token:read"],
}));

describe("records at the limit", () => {
  let api: Api;
  let large: { readonly id: string }[];

  it("can be created", async () => {
    api = createRestApi(service.url);
    large = [];
    for (let index = 0; index < 40; index++) {
      const request = { name: `large ${index}`, type: "private", rules };
      large.push(await api.createApplication(service.firstKey, request));
    }
  });

  it("do not delay other calls when they are listed, searched and checked", async () => {
    await service.runAttack(async (client) => {
      const { firstKey } = service;
      const checks = Array.from({ length: 1_000 }, (_, index) => ({
        applicationId: large[index % large.length]?.id,
        permission: "token:read",
        token: { container: `/a/${index % 100}/` },
      }));
      const calls = Array.from({ length: 10 }, () => [
        api.listApplications(firstKey, { size: 100 }),
        api.listApplications(firstKey, { q: "large", size: 100 }),
        api.batchCheckAccess(firstKey, { checks }),
      ]).flat();
      const answered = Promise.allSettled(calls);
      await client.waitForResponses(20);
      const results = await answered;
      expect(results.some(({ status }) => status === "fulfilled")).toBe(true);
    });
  });

  it("take bounded memory when slow readers request them", async () => {
    await service.runAttack(async (client) => {
      const sessions = Array.from({ length: 20 }, () => {
        const session = connectHttp2(service.url, { settings: { initialWindowSize: 0 } });
        session.on("error", () => {});
        for (let each = 0; each < 50; each++) {
          const stream = session.request({
            ":path": "/applications?size=100",
            "svc-api-key": service.firstKey,
          });
          stream.on("error", () => {});
        }
        return session;
      });
      await client.waitForResponses(50);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });

  it("do not delay other calls when 100 streams watch them change", async () => {
    await service.runAttack(async (client) => {
      const { watchEvents } = createClient(
        EventService,
        createGrpcTransport({ baseUrl: service.url }),
      );
      const stopped = new AbortController();
      // Each watcher listens to it.
      setMaxListeners(0, stopped.signal);
      let received = 0;
      const watchers = Array.from({ length: 100 }, async () => {
        const headers = { "svc-api-key": service.firstKey };
        for await (const { events } of watchEvents({}, { headers, signal: stopped.signal })) {
          received += events.length;
        }
      });
      const ended = Promise.allSettled(watchers);
      for (const { id } of large.slice(0, 5)) {
        const changed = { id, name: "changed", permissions: ["token:read"], rules };
        await api.updateApplication(service.firstKey, changed);
      }
      await client.waitForResponses(20);
      await until(async () => received >= 100);
      stopped.abort();
      await ended;
    });
  });
});
