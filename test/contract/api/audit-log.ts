import { createHash } from "node:crypto";
import { create, toJsonString } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type Event, ListEventsResponseSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { newId } from "../../../src/lib/uuid.js";
import { keyOf } from "../../support/api/api.js";
import { until } from "../../support/until.js";
import { expectValid } from "./assertions.js";
import {
  type ApiSubject,
  containerRule,
  seedTenant,
  sessionRule,
  type Tenant,
  tokenRead,
} from "./fixtures.js";

const hour = 3_600_000;
const service = "latchkey.v1.ApplicationService";

export function describeAuditLog({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  async function listEvents({ root }: Pick<Tenant, "root">): Promise<Event[]> {
    const page = await api().listEvents(root.key, { size: 100 });
    return expectValid(ListEventsResponseSchema, page).data;
  }

  /** Makes a change and returns the one event that it wrote. */
  async function captureEvent(tenant: Tenant, change: () => Promise<unknown>): Promise<Event> {
    const before = await listEvents(tenant);
    await change();
    const [event, ...others] = await listEvents(tenant);
    expect(others).toEqual(before);
    if (!event) {
      throw new Error("the change wrote no event");
    }
    return event;
  }

  /** The request ids in the log lines of successful calls of a method. */
  const loggedRequestIds = (method: string | undefined) =>
    server()
      .logs.filter((line) => line.method === method && line.code === "ok")
      .map(({ request_id }) => request_id);

  describe("the audit log of an application", () => {
    it("has one event per change, with the actor, time, method and address", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const [rootKey] = (await api().listApplicationKeys(root.key, { id: root.applicationId }))
        .data;
      server().clock.advance(1_000);
      const event = await captureEvent(tenant, () => api().disableApplication(root.key, shop));
      expect(event).toMatchObject({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        kind: "application.disabled",
        at: timestampFromMs(server().clock.now()),
        outcome: "success",
        actor: { applicationId: root.applicationId, keyId: rootKey?.id },
        target: { applicationId: shop.id },
        method: `${service}/DisableApplication`,
        address: "127.0.0.1",
      });
      expect(event.actor?.sessionId).toBeUndefined();
      expect([event.reason, event.count, event.endsAt]).toEqual([undefined, undefined, undefined]);
      expect(loggedRequestIds(event.method)).toContain(event.requestId);
    });

    it("has the state before and after a change", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const id = shop.id;
      const grants = { permissions: ["token:use"], rules: [containerRule] };
      const original = { name: "public one", permissions: ["token:create"], rules: [] };
      const updated = await captureEvent(tenant, () =>
        api().updateApplication(root.key, { id, name: "till", ...grants }),
      );
      expect(updated).toMatchObject({
        kind: "application.updated",
        before: { ...original, status: "enabled" },
        after: { name: "till", ...grants, status: "enabled" },
      });
      const disabled = await captureEvent(tenant, () => api().disableApplication(root.key, { id }));
      expect(disabled).toMatchObject({
        kind: "application.disabled",
        before: { name: "till", ...grants, status: "enabled" },
        after: { name: "till", ...grants, status: "disabled" },
      });
      const enabled = await captureEvent(tenant, () => api().enableApplication(root.key, { id }));
      expect(enabled).toMatchObject({
        kind: "application.enabled",
        before: { status: "disabled" },
        after: { status: "enabled" },
      });
      const deleted = await captureEvent(tenant, () => api().deleteApplication(root.key, { id }));
      expect(deleted).toMatchObject({
        kind: "application.deleted",
        before: { name: "till", ...grants },
      });
      expect(deleted.after).toBeUndefined();
    });

    it("has the names of actor and target as they were, also after a deletion", async () => {
      const tenant = await createTenant();
      const { root, shop, openSession } = tenant;
      const id = shop.id;
      await openSession({ permissions: ["token:read"] });
      const { data } = await api().listSessions(root.key, { applicationId: id });
      await api().deleteSession(root.key, { id: data[0]?.id ?? "" });
      await api().regenerateApplicationKey(root.key, { id });
      await api().updateApplication(root.key, { id, name: "till", permissions: ["token:use"] });
      await api().deleteApplication(root.key, { id });
      const events = (await listEvents(tenant)).filter((it) => it.target?.applicationId === id);
      expect(events.map(({ kind, actor, target }) => [kind, actor?.name, target?.name])).toEqual([
        ["application.deleted", "Bootstrap", "till"],
        ["application.updated", "Bootstrap", "till"],
        ["key.regenerated", "Bootstrap", "public one"],
        ["session.deleted", "Bootstrap", "public one"],
        ["session.authorized", "private one", "public one"],
        ["application.created", "Bootstrap", "public one"],
      ]);
    });

    it("has all fields of a created application", async () => {
      const tenant = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + hour);
      const given = {
        name: "expiring",
        permissions: ["token:read"],
        rules: [containerRule],
        expiresAt,
      };
      const event = await captureEvent(tenant, () =>
        api().createApplication(tenant.root.key, { type: "private", ...given }),
      );
      expect(event).toMatchObject({ kind: "application.created", after: given });
      expect(event.before).toBeUndefined();
      const id = event.target?.applicationId ?? "";
      const [key] = (await api().listApplicationKeys(tenant.root.key, { id })).data;
      expect(event.target?.keyId).toBe(key?.id);
    });

    it("has no actor for the first application of a tenant", async () => {
      const root = await server().createTenant();
      const [event] = await listEvents({ root });
      expect(event).toMatchObject({
        kind: "application.created",
        target: { applicationId: root.applicationId },
        after: { permissions: expect.arrayContaining(["event:read"]) },
      });
      expect([event?.actor, event?.method]).toEqual([undefined, undefined]);
    });

    it("names the key that was created or revoked", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const { id } = shop;
      const gracePeriod = durationFromMs(hour);
      const regenerated = await captureEvent(tenant, () =>
        api().regenerateApplicationKey(root.key, { id, gracePeriod }),
      );
      const [newest, old] = (await api().listApplicationKeys(root.key, { id })).data;
      expect(regenerated).toMatchObject({
        kind: "key.regenerated",
        target: { applicationId: id, keyId: newest?.id },
      });
      const keyId = old?.id ?? "";
      const deleted = await captureEvent(tenant, () =>
        api().deleteApplicationKey(root.key, { id, keyId }),
      );
      expect(deleted).toMatchObject({ kind: "key.deleted", target: { applicationId: id, keyId } });
    });
  });

  describe("the audit log of a session", () => {
    it("has one event per change, with its actor", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const session = await api().createSession(shop.key);
      const target = { applicationId: shop.id, sessionId: session.id };
      const grants = { ...tokenRead, rules: [sessionRule] };
      const authorized = await captureEvent(tenant, () =>
        api().authorizeSession(backend.key, { nonce: session.nonce, ...grants }),
      );
      expect(authorized).toMatchObject({
        kind: "session.authorized",
        actor: { applicationId: backend.id },
        target,
        after: grants,
      });
      expect(authorized.after?.status).toBeUndefined();
      const deleted = await captureEvent(tenant, () => api().deleteSession(root.key, session));
      expect(deleted).toMatchObject({ kind: "session.deleted", target, before: grants });
      const revoked = await captureEvent(tenant, () => api().revokeAllSessions(root.key, shop));
      expect(revoked).toMatchObject({
        kind: "application.sessions_revoked",
        target: { applicationId: shop.id },
      });
      expect(revoked.openedOnly).toBeUndefined();
      const openedOnly = await captureEvent(tenant, () =>
        api().revokeAllSessions(root.key, { id: shop.id, openedOnly: true }),
      );
      expect(openedOnly).toMatchObject({ kind: "application.sessions_revoked", openedOnly: true });
    });

    it("has no event of a session that its own key ends before it was authorized", async () => {
      const tenant = await createTenant();
      const { root, shop, openSession } = tenant;
      const countEvents = async () => (await listEvents(tenant)).length;
      const before = await countEvents();
      const [deleted, revoked] = [
        await api().createSession(shop.key),
        await api().createSession(shop.key),
      ];
      await api().deleteSession(deleted.sessionKey, deleted);
      await api().revokeKey(undefined, { key: revoked.sessionKey });
      await expectRefused(api().getSession(root.key, deleted), "session_not_found");
      await expectRefused(api().getSession(root.key, revoked), "session_not_found");
      expect(await countEvents()).toBe(before);
      const pending = await api().createSession(shop.key);
      await captureEvent(tenant, () => api().deleteSession(root.key, pending));
      const { key } = await openSession(tokenRead);
      const { sessionId: id = "" } = await api().whoAmI(key);
      await captureEvent(tenant, () => api().deleteSession(key, { id }));
    });

    it("names the session that made the change", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const permissions = ["session:delete"];
      const manager = await tenant.createApplication("private", { permissions });
      const { nonce, sessionKey, id } = await api().createSession(shop.key);
      await api().authorizeSession(manager.key, { nonce, permissions });
      const target = await tenant.createApplication("public", tokenRead);
      const event = await captureEvent(tenant, () => api().revokeAllSessions(sessionKey, target));
      expect(event.actor).toMatchObject({ applicationId: shop.id, sessionId: id });
      expect(event.actor?.keyId).toBeUndefined();
      expect((await api().listEvents(root.key, { actor: id })).data).toEqual([event]);
    });
  });

  describe("a refused call", () => {
    it("writes nothing for an invalid request or a missing target", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const before = await listEvents(tenant);
      const invalid = api().updateApplication(root.key, { id: shop.id, name: "", ...tokenRead });
      await expectRefused(invalid, "invalid_request");
      const stale = api().disableApplication(root.key, { id: shop.id, ifMatch: "nothing" });
      await expectRefused(stale, "version_mismatch");
      const id = newId(0);
      await expectRefused(api().deleteApplication(root.key, { id }), "application_not_found");
      await expectRefused(api().deleteSession(root.key, { id }), "session_not_found");
      const unknown = api().authorizeSession(backend.key, { nonce: "x", ...tokenRead });
      await expectRefused(unknown, "nonce_not_found");
      expect(await listEvents(tenant)).toEqual(before);
    });

    it("writes a denial, and nothing of the change", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const [key] = (await api().listApplicationKeys(root.key, backend)).data;
      const before = await listEvents(tenant);
      const call = api().deleteApplication(backend.key, shop);
      const { requestId } = await expectRefused(call, "permission_denied");
      await until(async () => (await listEvents(tenant)).length > before.length);
      const [event, ...others] = await listEvents(tenant);
      expect(others).toEqual(before);
      expect(event).toMatchObject({
        kind: "access.denied",
        outcome: "denied",
        actor: { applicationId: backend.id, keyId: key?.id },
        reason: "permission_denied",
        method: `${service}/DeleteApplication`,
        requestId,
        address: "127.0.0.1",
      });
      expect([event?.target, event?.count]).toEqual([undefined, undefined]);
    });
  });

  describe("an event", () => {
    it("contains no key, no nonce and no hash of one", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      const regenerated = await api().regenerateApplicationKey(root.key, shop);
      const { sessionKey, nonce, id } = await api().createSession(keyOf(regenerated));
      await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      await api().deleteSession(root.key, { id });
      const data = await listEvents(tenant);
      expect(data.length).toBeGreaterThan(5);
      const text = toJsonString(
        ListEventsResponseSchema,
        create(ListEventsResponseSchema, { pagination: {}, data }),
      );
      expect(text).not.toMatch(/lk_[a-z]{3}_/);
      for (const secret of [
        root.key,
        shop.key,
        keyOf(regenerated),
        backend.key,
        sessionKey,
        nonce,
      ]) {
        const hash = createHash("sha256").update(secret).digest();
        for (const encoded of [secret, hash.toString("hex"), hash.toString("base64")]) {
          expect(text).not.toContain(encoded);
        }
      }
    });
  });
}
