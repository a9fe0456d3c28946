import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from "@jest/globals";
import pino from "pino";
import { type Event, EventSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { ownPermissions } from "../../../src/contract/methods.js";
import { createExpiryWarnings } from "../../../src/services/events/expiry-warnings.js";
import type { EventStore } from "../../../src/store/port/events.js";
import { expectValid } from "../../contract/api/assertions.js";
import { seedTenant, type Tenant, tokenRead } from "../../contract/api/fixtures.js";
import { times } from "../../contract/store/fixtures.js";
import { keyOf, type StreamingApi } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const second = 1_000;
const day = 24 * 3_600 * second;
const noLog = pino({ level: "silent" });

describe.each(engines)("store=%s: expiry events", (engine) => {
  let base: TestServer;
  let api: StreamingApi;

  beforeAll(async () => {
    base = await startServer(engine, { sweepInterval: 50 });
    api = createGrpcApi(`127.0.0.1:${base.port}`);
  });

  afterAll(async () => {
    api.close();
    await base.close();
  });

  const createTenant = () => seedTenant(base, api);

  /** Runs several instances concurrently, each until nothing is left to write. */
  async function runWarnings(instances = 1, log = noLog): Promise<void> {
    const runInstance = async () => {
      let finish = () => {};
      const done = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const addExpirationEvents: EventStore["addExpirationEvents"] = async (leadTime, toEvents) => {
        const count = await base.store.events.addExpirationEvents(leadTime, toEvents);
        if (leadTime === 0 && count === 0) {
          finish();
        }
        return count;
      };
      const warnings = createExpiryWarnings({ events: { addExpirationEvents }, log });
      warnings.start();
      await done;
      await warnings.close();
    };
    await Promise.all(Array.from({ length: instances }, runInstance));
  }

  async function listWarnings({ root }: Tenant, target: string): Promise<Event[]> {
    const { data } = await api.listEvents(root.key, { target, size: 100 });
    return data
      .filter(({ kind }) => /expir/.test(kind))
      .map((event) => expectValid(EventSchema, event))
      .toReversed();
  }

  const getKinds = (events: readonly Event[]) => events.map(({ kind }) => kind);

  it("warn about the last manager of a tenant, also in the log", async () => {
    const tenant = await createTenant();
    const { applicationId: rootId } = tenant.root;
    const expiresAt = timestampFromMs(base.clock.now() + 30 * day);
    const { id, key } = await tenant.createApplication("management", {
      permissions: ownPermissions.map(({ name }) => name),
      expiresAt,
    });
    await api.deleteApplication(key, { id: rootId });
    const reader = await api.createApplication(key, {
      name: "reader",
      type: "management",
      permissions: ["event:read"],
      expiresAt,
    });
    base.clock.advance(23 * day);
    const lines: Record<string, unknown>[] = [];
    await runWarnings(1, pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }));
    const written = await listWarnings(
      { ...tenant, root: { ...tenant.root, key: keyOf(reader) } },
      id,
    );
    expect(getKinds(written)).toEqual(["application.expiring", "last_manager.expiring"]);
    expect(written[1]?.endsAt).toEqual(expiresAt);
    expect(lines).toMatchObject([{ tenant: tenant.root.tenantId, application: id }]);
    expect(lines[0]?.msg).toMatch(/^the last application .* expires soon/);
  });

  it("are written a week before, a day before and at the expiry, once each", async () => {
    const tenant = await createTenant();
    const expiresAt = timestampFromMs(base.clock.now() + 30 * day);
    const { id } = await tenant.createApplication("private", { ...tokenRead, expiresAt });
    const written = async () => getKinds(await listWarnings(tenant, id));
    await runWarnings();
    expect(await written()).toEqual([]);
    base.clock.advance(23 * day);
    await runWarnings(2);
    await runWarnings(2);
    expect(await written()).toEqual(["application.expiring"]);
    base.clock.advance(6 * day);
    await runWarnings(2);
    expect(await written()).toEqual(["application.expiring", "application.expiring"]);
    base.clock.advance(day);
    await runWarnings(2);
    await runWarnings();
    const warnings = await listWarnings(tenant, id);
    expect(getKinds(warnings)).toEqual([
      "application.expiring",
      "application.expiring",
      "application.expired",
    ]);
    for (const warning of warnings) {
      expect(warning).toMatchObject({
        outcome: "success",
        target: { applicationId: id, name: "private one" },
        endsAt: expiresAt,
      });
      expect([warning.actor, warning.method]).toEqual([undefined, undefined]);
    }
  });

  it("are written for a replaced key, with its id", async () => {
    const tenant = await createTenant();
    const { root, shop } = tenant;
    const gracePeriod = durationFromMs(10 * day);
    await api.regenerateApplicationKey(root.key, { id: shop.id, gracePeriod });
    const [, old] = (await api.listApplicationKeys(root.key, shop)).data;
    const keyId = old?.id ?? "";
    base.clock.advance(3 * day);
    await runWarnings(2);
    base.clock.advance(6 * day);
    await runWarnings(2);
    base.clock.advance(day);
    await runWarnings(2);
    const warnings = await listWarnings(tenant, keyId);
    expect(getKinds(warnings)).toEqual(["key.expiring", "key.expiring", "key.expired"]);
    for (const warning of warnings) {
      expect(warning).toMatchObject({
        target: { applicationId: shop.id, keyId, name: "public one" },
        endsAt: old?.expiresAt,
      });
    }
  });

  it("are written for many expirations, each in its own tenant", async () => {
    const tenants = [await createTenant(), await createTenant()];
    const expiresAt = timestampFromMs(base.clock.now() + 2 * day);
    const createExpiring = (index: number) =>
      tenants[index % 2]?.createApplication("private", { ...tokenRead, expiresAt });
    const created: Awaited<ReturnType<typeof createExpiring>>[] = [];
    while (created.length < 150) {
      // A few at a time, for slow machines.
      created.push(...(await Promise.all(times(10, createExpiring))));
    }
    base.clock.advance(2 * day);
    await runWarnings(2);
    for (const [index, { root }] of tenants.entries()) {
      const { data } = await api.listEvents(root.key, { kind: ["application.expired"], size: 100 });
      const expected = created
        .filter((_, position) => position % 2 === index)
        .map((application) => application?.id);
      expect(data.map(({ target }) => target?.applicationId).sort()).toEqual(expected.sort());
    }
  });

  it("are written by whichever server checks first", async () => {
    const tenant = await createTenant();
    const expiresAt = timestampFromMs(base.clock.now() + 3 * day);
    const { id } = await tenant.createApplication("private", { ...tokenRead, expiresAt });
    base.clock.advance(3 * day);
    const servers = await Promise.all(
      Array.from({ length: 2 }, () => startServer(engine, { store: base.store })),
    );
    const written = async () => getKinds(await listWarnings(tenant, id));
    await until(async () => (await written()).includes("application.expired"));
    await Promise.all(servers.map((server) => server.close()));
    expect((await written()).filter((kind) => kind === "application.expired")).toHaveLength(1);
  });

  it("are checked periodically", async () => {
    const tenant = await createTenant();
    const warnings = createExpiryWarnings({ events: base.store.events, log: noLog, interval: 10 });
    warnings.start();
    const expiresAt = timestampFromMs(base.clock.now() + 3 * day);
    const { id } = await tenant.createApplication("private", { ...tokenRead, expiresAt });
    base.clock.advance(3 * day);
    const isWritten = async () =>
      getKinds(await listWarnings(tenant, id)).includes("application.expired");
    await until(isWritten);
    await warnings.close();
  });
});

describe("expiry checks with a failing store", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it("are logged and retried, and stop when closed", async () => {
    let calls = 0;
    const addExpirationEvents: EventStore["addExpirationEvents"] = async () => {
      if (calls++ < 3) {
        throw new Error("store failure");
      }
      return 0;
    };
    const lines: string[] = [];
    const log = pino({}, { write: (line) => lines.push(line) });
    const warnings = createExpiryWarnings({
      events: { addExpirationEvents },
      log,
      interval: second,
    });
    warnings.start();
    await jest.advanceTimersByTimeAsync(60 * second);
    await warnings.close();
    expect(calls).toBeGreaterThan(6);
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: 40,
      err: { message: "store failure" },
    });
    const callsBefore = calls;
    await jest.advanceTimersByTimeAsync(60 * second);
    expect(calls).toBe(callsBefore);
  });
});
