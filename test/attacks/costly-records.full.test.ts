import { setMaxListeners } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { readSettings } from "../../src/config/settings.js";
import { type Api, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { scrape } from "../support/service/exposition.js";
import { engines } from "../support/service/server.js";
import { until } from "../support/until.js";
import { useAttackedStore } from "./support/attacked-store.js";

const megabyte = 1024 * 1024;

const { responseBudget } = readSettings({}).limits;

/**
 * The maximum growth while responses are not read: the budget, of which one tenant gets half, and
 * the garbage of the calls that build them.
 */
const maxSlowReaderGrowth = 2 * responseBudget;

/** Grants of nearly 64 KiB, which every application may have. */
const rules = Array.from({ length: 100 }, (_, index) => ({
  priority: index + 1,
  description: `${index} ${"x".repeat(430)}`,
  container: `/a/${index}/`,
  transform: "mask",
  permissions: ["token:read"],
}));

/** Permissions that together with their rules are nearly 64 KiB, which a session may have. */
const permissions = Array.from(
  { length: 7_000 },
  (_, index) => `p:a${(1_296 + index).toString(36)}`,
);

/** Rules with 50 permissions each, which is the most. */
function rulesWithAll<Rule extends object>(rule: Rule) {
  return Array.from({ length: permissions.length / 50 }, (_, index) => ({
    priority: 1,
    transform: "mask",
    permissions: permissions.slice(50 * index, 50 * (index + 1)),
    ...rule,
  }));
}

/** Starts calls, each after the previous one of its client. Returns how many succeeded, and a function that stops them. */
function repeat(clients: number, call: () => Promise<unknown>) {
  let succeeded = 0;
  let isStopped = false;
  const running = Promise.all(
    Array.from({ length: clients }, async () => {
      while (!isStopped) {
        // Calls that are refused because of the load are part of the attack.
        succeeded += await call().then(
          () => 1,
          () => 0,
        );
      }
    }),
  );
  return async () => {
    isStopped = true;
    await running;
    return succeeded;
  };
}

describe.each(engines)("records at the limit on store=%s", (engine) => {
  const { service, runAttack } = useAttackedStore(engine);
  let api: Api;
  /** Of a tenant of its own. */
  let attacker: string;
  const large: { readonly id: string }[] = [];

  beforeAll(async () => {
    api = createRestApi(service.url);
    attacker = await service.createTenant();
    for (let index = 0; index < 250; index++) {
      const request = { name: `large ${index}`, type: "private", rules };
      large.push(await api.createApplication(attacker, request));
    }
  });

  /** Attacks with calls until others got many responses. */
  async function attackWith(call: () => Promise<unknown>): Promise<void> {
    await runAttack(async (others) => {
      const stop = repeat(20, call);
      await Promise.all([others.waitForResponses(20), others.waitForRounds(5)]);
      expect(await stop()).toBeGreaterThan(0);
    });
  }

  /** A session with all permissions. */
  async function openSessionWithAll(): Promise<string> {
    const create = (type: string, grants: object) =>
      api.createApplication(attacker, { name: type, type, ...grants });
    const backend = await create("private", { rules: rulesWithAll({ container: "/" }) });
    const page = await create("public", { permissions: ["token:read"] });
    const { nonce, sessionKey } = await api.createSession(keyOf(page));
    const conditions = [{ attribute: "id", operator: "equals", value: "1" }];
    const granted = { nonce, rules: rulesWithAll({ conditions }) };
    await api.authorizeSession(keyOf(backend), granted);
    return sessionKey;
  }

  it("do not delay other calls when they are listed", async () => {
    await attackWith(() => api.listApplications(attacker, { size: 100 }));
  });

  it.each(["large", "nothing has this name"])(
    "do not delay other calls when they are searched for %j",
    async (q) => {
      await attackWith(() => api.listApplications(attacker, { q, size: 100 }));
    },
  );

  it.each([1, 40, 250])(
    "do not delay other calls when a batch checks %i of them",
    async (principals) => {
      const checks = Array.from({ length: 1_000 }, (_, index) => ({
        applicationId: large[index % principals]?.id,
        permission: "token:read",
        token: { container: `/a/${index % 100}/` },
      }));
      await attackWith(() => api.batchCheckAccess(attacker, { checks }));
    },
  );

  it("do not delay other calls when a session has thousands of permissions", async () => {
    const sessionKey = await openSessionWithAll();
    const { rules } = await api.whoAmI(sessionKey);
    expect(rules.flatMap((rule) => rule.permissions)).toEqual(permissions);
    await attackWith(() => api.whoAmI(sessionKey));
    const checks = permissions
      .slice(0, 1_000)
      .map((permission) => ({ key: sessionKey, permission, token: { id: "1" } }));
    await attackWith(() => api.batchCheckAccess(attacker, { checks }));
  });

  it("take bounded memory when slow readers list them", async () => {
    let used = 0;
    await runAttack(async (others) => {
      const sessions = Array.from({ length: 20 }, () => {
        const session = connectHttp2(service.url, { settings: { initialWindowSize: 0 } });
        session.on("error", () => {});
        for (let each = 0; each < 50; each++) {
          const path = each % 2 === 0 ? "/applications?size=100" : "/events?size=100";
          const stream = session.request({ ":path": path, "svc-api-key": attacker });
          stream.on("error", () => {});
        }
        return session;
      });
      const stopMeasuring = repeat(1, async () => {
        const metrics = await scrape(service);
        used = Math.max(used, metrics.sum("latchkey_response_bytes"));
      });
      await Promise.all([others.waitForResponses(50), others.waitForRounds(20)]);
      await stopMeasuring();
      for (const session of sessions) {
        session.destroy();
      }
    }, maxSlowReaderGrowth);
    process.stdout.write(`${(used / megabyte).toFixed(1)} MiB of responses were unread\n`);
    expect(used).toBeGreaterThan(megabyte);
    expect(used).toBeLessThanOrEqual(responseBudget / 2);
  });

  it("do not delay other calls when 100 streams watch them change", async () => {
    await runAttack(async (others) => {
      const { watchEvents } = createClient(
        EventService,
        createGrpcTransport({ baseUrl: service.url }),
      );
      const stopped = new AbortController();
      // Each watcher listens to it.
      setMaxListeners(0, stopped.signal);
      let received = 0;
      const watchers = Array.from({ length: 100 }, async () => {
        const headers = { "svc-api-key": attacker };
        for await (const { events } of watchEvents({}, { headers, signal: stopped.signal })) {
          received += events.length;
        }
      });
      const ended = Promise.allSettled(watchers);
      for (const { id } of large.slice(0, 5)) {
        const changed = { id, name: "changed", permissions: ["token:read"], rules };
        await api.updateApplication(attacker, changed);
      }
      await Promise.all([others.waitForResponses(20), others.waitForRounds(5)]);
      await until(async () => received >= 100);
      stopped.abort();
      await ended;
    });
  });
});
