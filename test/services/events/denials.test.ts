import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { seedTenant, type Tenant, tokenRead } from "../../contract/api/fixtures.js";
import type { StreamingApi } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { useReaders } from "../../support/api/streams.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

const minute = 60_000;
const service = "latchkey.v1.ApplicationService";
const bursts = 10;
/** Calls of each kind per burst. */
const burstSize = 20;

describe.each(engines)("store=%s: denied calls", (engine) => {
  const read = useReaders();
  let base: TestServer;
  let api: StreamingApi;

  beforeAll(async () => {
    base = await startServer(engine);
    api = createGrpcApi(`127.0.0.1:${base.port}`);
  });

  afterAll(async () => {
    api.close();
    await base.close();
  });

  const createTenant = () => seedTenant(base, api);

  /** Makes calls to a separate server, closes it, and returns the events that it wrote. */
  async function recordDenials(
    { root }: Tenant,
    makeCalls: (api: StreamingApi) => Promise<unknown>,
  ): Promise<Event[]> {
    const writes: Promise<unknown>[] = [];
    const add: typeof base.store.events.add = (events) => {
      const write = base.store.events.add(events);
      writes.push(write);
      return write;
    };
    const server = await startServer(engine, {
      store: overrideStore(base.store, { events: { add } }),
    });
    const client = createGrpcApi(`127.0.0.1:${server.port}`);
    await makeCalls(client);
    client.close();
    await server.close();
    // Closing waits for writes for only two seconds; a slow machine may need longer.
    await Promise.all(writes);
    const { data } = await api.listEvents(root.key, { kind: ["access.denied"], size: 100 });
    return data;
  }

  const expectRefusal = (call: Promise<unknown>, reason: string) =>
    expect(call).rejects.toMatchObject({ reason });

  it("are counted exactly under concurrency", async () => {
    const tenant = await createTenant();
    const { root, backend, shop, createApplication } = tenant;
    const other = await createApplication("private", tokenRead);
    const replaced = await createApplication("private", tokenRead);
    await api.regenerateApplicationKey(root.key, replaced);
    const id = root.applicationId;
    const events = await recordDenials(tenant, async (api) => {
      const calls = [
        () => expectRefusal(api.deleteApplication(backend.key, { id }), "permission_denied"),
        () => expectRefusal(api.getApplication(other.key, { id }), "permission_denied"),
        () => expectRefusal(api.getApplication(shop.key, { id }), "permission_denied"),
        () => expectRefusal(api.whoAmI(replaced.key), "unauthenticated"),
        // An attacker who guesses another key each time.
        () => expectRefusal(api.whoAmI(generateKey("pub", shop.id)), "unauthenticated"),
      ];
      for (let round = 0; round < bursts; round++) {
        const burst = Array.from({ length: burstSize }, () => calls.map((call) => call()));
        await Promise.all(burst.flat());
      }
    });
    const counts = new Map<string, number>();
    for (const { actor, target, reason, count = 1 } of events) {
      const name = `${reason} ${(actor ?? target)?.applicationId}`;
      counts.set(name, (counts.get(name) ?? 0) + count);
    }
    const callsPerKind = bursts * burstSize;
    expect(Object.fromEntries(counts)).toEqual({
      [`permission_denied ${backend.id}`]: callsPerKind,
      [`permission_denied ${other.id}`]: callsPerKind,
      [`permission_denied ${shop.id}`]: callsPerKind,
      [`unknown_key ${replaced.id}`]: callsPerKind,
      [`unknown_key ${shop.id}`]: callsPerKind,
    });
  });

  it("are recorded with the invalid key's id and the reason", async () => {
    const tenant = await createTenant();
    const { root, createApplication } = tenant;
    const expiresAt = timestampFromMs(base.clock.now() + minute);
    const [disabled, shortLived, rotated, guessed] = [
      await createApplication("private", tokenRead),
      await createApplication("private", { ...tokenRead, expiresAt }),
      await createApplication("private", tokenRead),
      await createApplication("private", tokenRead),
    ];
    const expired = await tenant.openSession(tokenRead);
    const { sessionId } = await api.whoAmI(expired.key);
    const gracePeriod = durationFromMs(minute);
    await api.regenerateApplicationKey(root.key, { id: rotated.id, gracePeriod });
    const [, old] = (await api.listApplicationKeys(root.key, rotated)).data;
    await api.disableApplication(root.key, disabled);
    base.clock.advance(5 * minute);

    const events = await recordDenials(tenant, async (api) => {
      for (const { key } of [disabled, shortLived, rotated, expired]) {
        await expectRefusal(api.whoAmI(key), "unauthenticated");
      }
      await expectRefusal(api.whoAmI(generateKey("prv", guessed.id)), "unauthenticated");
    });
    const recorded = events.map(({ target, reason, count, actor }) => ({
      applicationId: target?.applicationId,
      sessionId: target?.sessionId,
      reason,
      count,
      actor,
    }));
    const common = { actor: undefined, count: undefined, sessionId: undefined };
    expect(recorded).toHaveLength(5);
    expect(recorded).toEqual(
      expect.arrayContaining([
        { ...common, applicationId: disabled.id, reason: "disabled" },
        { ...common, applicationId: shortLived.id, reason: "expired" },
        { ...common, applicationId: rotated.id, reason: "expired" },
        { ...common, applicationId: tenant.shop.id, sessionId, reason: "expired" },
        { ...common, applicationId: guessed.id, reason: "unknown_key" },
      ]),
    );
    const rotatedEvent = events.find(({ target }) => target?.applicationId === rotated.id);
    expect(rotatedEvent?.target?.keyId).toBe(old?.id);
  });

  it("name the application that the caller may not change as the target", async () => {
    const tenant = await createTenant();
    const { root, createApplication } = tenant;
    const id = root.applicationId;
    const weaker = await createApplication("private", {
      permissions: ["application:update", "application:delete"],
    });
    const events = await recordDenials(tenant, async (api) => {
      await expectRefusal(api.disableApplication(weaker.key, { id }), "permission_denied");
      await expectRefusal(api.deleteApplication(weaker.key, { id }), "permission_denied");
    });
    expect(
      events.map(({ actor, target }) => [actor?.applicationId, target?.applicationId]),
    ).toEqual([
      [weaker.id, id],
      [weaker.id, id],
    ]);
  });

  it("name the session that the caller may not delete as the target", async () => {
    const tenant = await createTenant();
    const { createApplication } = tenant;
    const reader = await createApplication("public", { permissions: ["application:read"] });
    const weaker = await createApplication("private", { permissions: ["session:delete"] });
    const { id: sessionId } = await api.createSession(reader.key);
    const [event] = await recordDenials(tenant, (api) =>
      expectRefusal(api.deleteSession(weaker.key, { id: sessionId }), "permission_denied"),
    );
    expect(event).toMatchObject({
      actor: { applicationId: weaker.id, name: "private one" },
      target: { applicationId: reader.id, sessionId, name: "public one" },
    });
  });

  it("are not recorded for unknown keys or missing targets", async () => {
    const tenant = await createTenant();
    const { root, shop, createApplication } = tenant;
    const deleted = await createApplication("private", tokenRead);
    await api.deleteApplication(root.key, deleted);
    const { nonce } = await tenant.openSession();
    const events = await recordDenials(tenant, async (api) => {
      const invalidKeys = [
        undefined,
        "",
        "secret",
        `${shop.key}x`,
        generateKey("prv", newId(0)),
        nonce,
      ];
      for (const key of [...invalidKeys, deleted.key]) {
        await expectRefusal(api.whoAmI(key), "unauthenticated");
      }
      await expectRefusal(api.getApplication(root.key, deleted), "application_not_found");
      await expectRefusal(api.getApplication(root.key, { id: "42" }), "invalid_request");
    });
    expect(events).toEqual([]);
  });

  it("include attempts to grant more than the caller holds", async () => {
    const tenant = await createTenant();
    const creator = await tenant.createApplication("private", {
      permissions: ["application:create"],
    });
    const events = await recordDenials(tenant, (api) => {
      const request = { name: "a", type: "private", permissions: ["application:delete"] };
      return expectRefusal(api.createApplication(creator.key, request), "permission_denied");
    });
    expect(events).toMatchObject([
      {
        actor: { applicationId: creator.id },
        reason: "permission_denied",
        method: `${service}/CreateApplication`,
      },
    ]);
  });

  it("include disallowed origins and addresses", async () => {
    const tenant = await createTenant();
    const { id, key } = await api.createApplication(tenant.root.key, {
      name: "restricted",
      type: "private",
      ...tokenRead,
      allowedCidrs: ["203.0.113.0/24"],
    });
    const events = await recordDenials(tenant, (api) =>
      expectRefusal(api.whoAmI(key), "address_not_allowed"),
    );
    expect(events).toMatchObject([
      { actor: { applicationId: id }, reason: "address_not_allowed", address: "127.0.0.1" },
    ]);
  });

  it("include streams that end because the caller lost access", async () => {
    const tenant = await createTenant();
    const { root, backend, createApplication } = tenant;
    const replaced = await createApplication("private", { permissions: ["access:check"] });
    const events = await recordDenials(tenant, async (api) => {
      const watchers = [backend, replaced].map(({ key }) =>
        read((signal) => api.watchCredentials(key, { heartbeat: durationFromMs(50) }, signal)),
      );
      await Promise.all(watchers.map((watcher) => watcher.next()));
      await api.updateApplication(root.key, { id: backend.id, name: "a", ...tokenRead });
      await api.regenerateApplicationKey(root.key, replaced);
      const ends = await Promise.all(watchers.map((watcher) => watcher.end()));
      expect(ends.map((end) => end?.reason)).toEqual(["permission_denied", "unauthenticated"]);
    });
    const method = "latchkey.v1.AccessService/WatchCredentials";
    expect(events).toHaveLength(2);
    expect(events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          method,
          reason: "permission_denied",
          actor: expect.objectContaining({ applicationId: backend.id }),
        }),
        expect.objectContaining({
          method,
          reason: "unauthenticated",
          target: expect.objectContaining({ applicationId: replaced.id }),
        }),
      ]),
    );
  });
});
