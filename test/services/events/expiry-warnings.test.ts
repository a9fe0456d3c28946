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
import { tokenRead } from "../../contract/api/grants.js";
import { keepsRules } from "../../contract/api/keeps-rules.js";
import { createTenant as fillTenant, type Tenant } from "../../contract/api/tenant.js";
import { times } from "../../contract/store/fixtures.js";
import { keyOf, type StreamingApi } from "../../support/api.js";
import { createGrpcApi } from "../../support/api-grpc.js";
import { engines, startServer, type TestServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const second = 1_000;
const day = 24 * 3_600 * second;
const noLog = pino({ level: "silent" });

describe.each(engines)("store=%s: what ends", (engine) => {
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

  const createTenant = () => fillTenant(base, api);

  /** Lets so many instances look at once, each until it finds no more that has ended. */
  async function look(instances = 1, log = noLog): Promise<void> {
    const lookOnce = async () => {
      let isDone = () => {};
      const done = new Promise<void>((resolve) => {
        isDone = resolve;
      });
      const addForEnds: EventStore["addForEnds"] = async (lead, toEvents) => {
        const count = await base.store.events.addForEnds(lead, toEvents);
        if (lead === 0 && count === 0) {
          isDone();
        }
        return count;
      };
      const warnings = createExpiryWarnings({ events: { addForEnds }, log });
      warnings.start();
      await done;
      await warnings.close();
    };
    await Promise.all(Array.from({ length: instances }, lookOnce));
  }

  async function warningsOf({ root }: Tenant, target: string): Promise<Event[]> {
    const { data } = await api.listEvents(root.key, { target, size: 100 });
    return data
      .filter(({ kind }) => /expir/.test(kind))
      .map((event) => keepsRules(EventSchema, event))
      .toReversed();
  }

  const kindsOf = (events: readonly Event[]) => events.map(({ kind }) => kind);

  it("is told as the last manager of its tenant, in events and in the log", async () => {
    const tenant = await createTenant();
    const { applicationId: rootId } = tenant.root;
    const expiresAt = timestampFromMs(base.clock.now() + 30 * day);
    const { id, key } = await tenant.make("management", {
      permissions: ownPermissions.map(({ name }) => name),
      expiresAt,
    });
    await api.deleteApplication(key, { id: rootId });
    const heir = await api.createApplication(key, {
      ...{ name: "reader", type: "management", permissions: ["event:read"] },
      expiresAt,
    });
    base.clock.advance(23 * day);
    const lines: Record<string, unknown>[] = [];
    await look(1, pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }));
    const told = await warningsOf({ ...tenant, root: { ...tenant.root, key: keyOf(heir) } }, id);
    expect(kindsOf(told)).toEqual(["application.expiring", "last_manager.expiring"]);
    expect(told[1]?.endsAt).toEqual(expiresAt);
    expect(lines).toMatchObject([{ tenant: tenant.root.tenantId, application: id }]);
    expect(lines[0]?.msg).toMatch(/^the last application .* is about to expire/);
  });

  it("is told a week before, a day before, and when it has ended, once each", async () => {
    const tenant = await createTenant();
    const expiresAt = timestampFromMs(base.clock.now() + 30 * day);
    const { id } = await tenant.make("private", { ...tokenRead, expiresAt });
    const told = async () => kindsOf(await warningsOf(tenant, id));
    await look();
    expect(await told()).toEqual([]);
    base.clock.advance(23 * day);
    await look(2);
    await look(2);
    expect(await told()).toEqual(["application.expiring"]);
    base.clock.advance(6 * day);
    await look(2);
    expect(await told()).toEqual(["application.expiring", "application.expiring"]);
    base.clock.advance(day);
    await look(2);
    await look();
    const warnings = await warningsOf(tenant, id);
    expect(kindsOf(warnings)).toEqual([
      ...["application.expiring", "application.expiring"],
      "application.expired",
    ]);
    for (const warning of warnings) {
      expect(warning).toMatchObject({
        outcome: "success",
        target: { applicationId: id },
        endsAt: expiresAt,
      });
      expect([warning.actor, warning.method]).toEqual([undefined, undefined]);
    }
  });

  it("is told of a key that was replaced, by its id", async () => {
    const tenant = await createTenant();
    const { root, shop } = tenant;
    const gracePeriod = durationFromMs(10 * day);
    await api.regenerateApplicationKey(root.key, { id: shop.id, gracePeriod });
    const [, old] = (await api.listApplicationKeys(root.key, shop)).data;
    const keyId = old?.id ?? "";
    base.clock.advance(3 * day);
    await look(2);
    base.clock.advance(6 * day);
    await look(2);
    base.clock.advance(day);
    await look(2);
    const warnings = await warningsOf(tenant, keyId);
    expect(kindsOf(warnings)).toEqual(["key.expiring", "key.expiring", "key.expired"]);
    for (const warning of warnings) {
      expect(warning).toMatchObject({
        target: { applicationId: shop.id, keyId },
        endsAt: old?.expiresAt,
      });
    }
  });

  it("is told of all, where there are many, to each tenant its own", async () => {
    const tenants = [await createTenant(), await createTenant()];
    const expiresAt = timestampFromMs(base.clock.now() + 2 * day);
    const makeOne = (at: number) => tenants[at % 2]?.make("private", { ...tokenRead, expiresAt });
    const made: Awaited<ReturnType<typeof makeOne>>[] = [];
    while (made.length < 150) {
      // A few at a time, which a slow machine can take.
      made.push(...(await Promise.all(times(10, makeOne))));
    }
    base.clock.advance(2 * day);
    await look(2);
    for (const [at, { root }] of tenants.entries()) {
      const { data } = await api.listEvents(root.key, { kind: "application.expired", size: 100 });
      const mine = made.filter((_, place) => place % 2 === at).map((it) => it?.id);
      expect(data.map(({ target }) => target?.applicationId).sort()).toEqual(mine.sort());
    }
  });

  it("is looked for by servers that are started, each of which may be the first", async () => {
    const tenant = await createTenant();
    const expiresAt = timestampFromMs(base.clock.now() + 3 * day);
    const { id } = await tenant.make("private", { ...tokenRead, expiresAt });
    base.clock.advance(3 * day);
    const servers = await Promise.all(
      Array.from({ length: 2 }, () => startServer(engine, { store: base.store })),
    );
    const told = async () => kindsOf(await warningsOf(tenant, id));
    await until(async () => (await told()).includes("application.expired"));
    await Promise.all(servers.map((server) => server.close()));
    expect((await told()).filter((kind) => kind === "application.expired")).toHaveLength(1);
  });

  it("is looked for again and again", async () => {
    const tenant = await createTenant();
    const warnings = createExpiryWarnings({ events: base.store.events, log: noLog, interval: 10 });
    warnings.start();
    const expiresAt = timestampFromMs(base.clock.now() + 3 * day);
    const { id } = await tenant.make("private", { ...tokenRead, expiresAt });
    base.clock.advance(3 * day);
    const isTold = async () =>
      kindsOf(await warningsOf(tenant, id)).includes("application.expired");
    await until(isTold);
    await warnings.close();
  });
});

describe("where the store fails", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it("it is tried again, the log tells of that, and nothing is asked for once it is closed", async () => {
    let asked = 0;
    const addForEnds: EventStore["addForEnds"] = async () => {
      if (asked++ < 3) {
        throw new Error("it is broken");
      }
      return 0;
    };
    const lines: string[] = [];
    const log = pino({}, { write: (line) => lines.push(line) });
    const warnings = createExpiryWarnings({ events: { addForEnds }, log, interval: second });
    warnings.start();
    await jest.advanceTimersByTimeAsync(60 * second);
    await warnings.close();
    expect(asked).toBeGreaterThan(6);
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: 40,
      err: { message: "it is broken" },
    });
    const askedBefore = asked;
    await jest.advanceTimersByTimeAsync(60 * second);
    expect(asked).toBe(askedBefore);
  });
});
