import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { makeKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { tokenRead } from "../../contract/api/grants.js";
import { createTenant as fillTenant, type Tenant } from "../../contract/api/tenant.js";
import type { StreamingApi } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { useReaders } from "../../support/api/streams.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

const minute = 60_000;
const service = "latchkey.v1.ApplicationService";
/** The number of rounds, and of calls of each kind per round. */
const bursts = 10;
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

  const createTenant = () => fillTenant(base, api);

  /** Makes calls to a separate server and returns the events it has written when closed. */
  async function denialsOf(
    { root }: Tenant,
    makeCalls: (api: StreamingApi) => Promise<unknown>,
  ): Promise<Event[]> {
    const writing: Promise<unknown>[] = [];
    const add: typeof base.store.events.add = (events) => {
      const added = base.store.events.add(events);
      writing.push(added);
      return added;
    };
    const server = await startServer(engine, {
      store: overrideStore(base.store, { events: { add } }),
    });
    const refusing = createGrpcApi(`127.0.0.1:${server.port}`);
    await makeCalls(refusing);
    refusing.close();
    await server.close();
    // Closing waits only two seconds; a slow machine may need longer.
    await Promise.all(writing);
    const { data } = await api.listEvents(root.key, { kind: "access.denied", size: 100 });
    return data;
  }

  const refuse = (call: Promise<unknown>, reason: string) =>
    expect(call).rejects.toMatchObject({ reason });

  it("are counted exactly under concurrency", async () => {
    const tenant = await createTenant();
    const { root, backend, shop, make } = tenant;
    const other = await make("private", tokenRead);
    const replaced = await make("private", tokenRead);
    await api.regenerateApplicationKey(root.key, replaced);
    const id = root.applicationId;
    const events = await denialsOf(tenant, async (api) => {
      const calls = [
        () => refuse(api.deleteApplication(backend.key, { id }), "permission_denied"),
        () => refuse(api.getApplication(other.key, { id }), "permission_denied"),
        () => refuse(api.getApplication(shop.key, { id }), "permission_denied"),
        () => refuse(api.whoAmI(replaced.key), "unauthenticated"),
        // A guessing attacker: another key each time.
        () => refuse(api.whoAmI(makeKey("pub", shop.id)), "unauthenticated"),
      ];
      for (let part = 0; part < bursts; part++) {
        const burst = Array.from({ length: burstSize }, () => calls.map((call) => call()));
        await Promise.all(burst.flat());
      }
    });
    const counts = new Map<string, number>();
    for (const { actor, target, reason, count = 1 } of events) {
      const name = `${reason} ${(actor ?? target)?.applicationId}`;
      counts.set(name, (counts.get(name) ?? 0) + count);
    }
    const each = bursts * burstSize;
    expect(Object.fromEntries(counts)).toEqual({
      [`permission_denied ${backend.id}`]: each,
      [`permission_denied ${other.id}`]: each,
      [`permission_denied ${shop.id}`]: each,
      [`unknown_key ${replaced.id}`]: each,
      [`unknown_key ${shop.id}`]: each,
    });
  });

  it("are recorded with the invalid key's id and the reason", async () => {
    const tenant = await createTenant();
    const { root, make } = tenant;
    const expiresAt = timestampFromMs(base.clock.now() + minute);
    const [disabled, brief, rotated, guessed] = [
      await make("private", tokenRead),
      await make("private", { ...tokenRead, expiresAt }),
      await make("private", tokenRead),
      await make("private", tokenRead),
    ];
    const gone = await tenant.open(tokenRead);
    const { sessionId } = await api.whoAmI(gone.key);
    const gracePeriod = durationFromMs(minute);
    await api.regenerateApplicationKey(root.key, { id: rotated.id, gracePeriod });
    const [, old] = (await api.listApplicationKeys(root.key, rotated)).data;
    await api.disableApplication(root.key, disabled);
    base.clock.advance(5 * minute);

    const events = await denialsOf(tenant, async (api) => {
      for (const { key } of [disabled, brief, rotated, gone]) {
        await refuse(api.whoAmI(key), "unauthenticated");
      }
      await refuse(api.whoAmI(makeKey("prv", guessed.id)), "unauthenticated");
    });
    const told = events.map(({ target, reason, count, actor }) => ({
      ...{ applicationId: target?.applicationId, sessionId: target?.sessionId },
      ...{ reason, count, actor },
    }));
    const ofKey = { actor: undefined, count: undefined, sessionId: undefined };
    expect(told).toHaveLength(5);
    expect(told).toEqual(
      expect.arrayContaining([
        { ...ofKey, applicationId: disabled.id, reason: "disabled" },
        { ...ofKey, applicationId: brief.id, reason: "expired" },
        { ...ofKey, applicationId: rotated.id, reason: "expired" },
        { ...ofKey, applicationId: tenant.shop.id, sessionId, reason: "expired" },
        { ...ofKey, applicationId: guessed.id, reason: "unknown_key" },
      ]),
    );
    const ofRotated = events.find(({ target }) => target?.applicationId === rotated.id);
    expect(ofRotated?.target?.keyId).toBe(old?.id);
  });

  it("leave no event for unknown keys or missing targets", async () => {
    const tenant = await createTenant();
    const { root, shop, make } = tenant;
    const deleted = await make("private", tokenRead);
    await api.deleteApplication(root.key, deleted);
    const { nonce } = await tenant.open();
    const events = await denialsOf(tenant, async (api) => {
      const bad = [undefined, "", "secret", `${shop.key}x`, makeKey("prv", newId(0)), nonce];
      for (const key of [...bad, deleted.key]) {
        await refuse(api.whoAmI(key), "unauthenticated");
      }
      await refuse(api.getApplication(root.key, deleted), "application_not_found");
      await refuse(api.getApplication(root.key, { id: "42" }), "invalid_request");
    });
    expect(events).toEqual([]);
  });

  it("include attempts to grant more than the caller holds", async () => {
    const tenant = await createTenant();
    const creator = await tenant.make("private", { permissions: ["application:create"] });
    const events = await denialsOf(tenant, (api) => {
      const request = { name: "a", type: "private", permissions: ["application:delete"] };
      return refuse(api.createApplication(creator.key, request), "permission_denied");
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
      ...{ name: "far away", type: "private", ...tokenRead },
      allowedCidrs: ["203.0.113.0/24"],
    });
    const events = await denialsOf(tenant, (api) => refuse(api.whoAmI(key), "address_not_allowed"));
    expect(events).toMatchObject([
      { actor: { applicationId: id }, reason: "address_not_allowed", address: "127.0.0.1" },
    ]);
  });

  it("include streams that end because the caller lost access", async () => {
    const tenant = await createTenant();
    const { root, backend, make } = tenant;
    const replaced = await make("private", { permissions: ["access:check"] });
    const events = await denialsOf(tenant, async (api) => {
      const watchers = [backend, replaced].map(({ key }) =>
        read((signal) => api.watchCredentials(key, { heartbeatMs: 50 }, signal)),
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
