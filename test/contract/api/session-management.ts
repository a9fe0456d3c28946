import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  RevokeAllSessionsResponseSchema,
  SessionSchema,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { newId } from "../../../src/lib/uuid.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, seedTenant, sessionRule, tokenRead } from "./fixtures.js";

const minute = 60_000;

export function describeSessionManagement({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  async function listIds(key: string, request = {}) {
    return (await api().listSessions(key, request)).data.map(({ id }) => id);
  }

  describe("an operator", () => {
    it("finds a session by the id that its creation returned", async () => {
      const { root, shop } = await createTenant();
      const { id, sessionKey } = await api().createSession(shop.key);
      expect((await api().whoAmI(sessionKey)).sessionId).toBe(id);
      expect(await api().getSession(root.key, { id })).toMatchObject({ id });
    });

    it("sees a session without its key and nonce", async () => {
      const { root, shop, backend } = await createTenant();
      const opened = await api().createSession(shop.key);
      const { id, nonce } = opened;
      const now = server().clock.now();
      const before = await api().getSession(root.key, { id });
      expect(before).toMatchObject({
        tenantId: root.tenantId,
        applicationId: shop.id,
        state: "unauthorized",
        permissions: [],
        rules: [],
        createdAt: timestampFromMs(now),
        expiresAt: opened.expiresAt,
      });
      expect(before.authorizedAt).toBeUndefined();

      server().clock.advance(1_000);
      const grants = { permissions: ["token:read"], rules: [sessionRule] };
      await api().authorizeSession(backend.key, { nonce, ...grants });
      const after = expectValid(SessionSchema, await api().getSession(root.key, { id }));
      expect(after).toMatchObject({
        state: "authorized",
        ...grants,
        authorizedBy: backend.id,
        authorizedAt: timestampFromMs(now + 1_000),
      });
      const text = JSON.stringify(after, (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      expect(text).not.toMatch(/lk_(ses|non)_/);
    });

    it("lists the sessions of the tenant, newest first, page by page", async () => {
      const { root, shop } = await createTenant();
      const opened: string[] = [];
      for (let count = 0; count < 5; count++) {
        server().clock.advance(1);
        opened.unshift((await api().createSession(shop.key)).id);
      }
      const listedIds: string[] = [];
      let start: string | undefined;
      do {
        const page = await api().listSessions(root.key, { size: 2, ...(start && { start }) });
        expect(page.pagination).toMatchObject({ pageSize: 2 });
        listedIds.push(...page.data.map(({ id }) => id));
        start = page.pagination?.next;
      } while (start);
      expect(listedIds).toEqual(opened);
    });

    it("counts the matching sessions on request", async () => {
      const { root, openSession } = await createTenant();
      await openSession(tokenRead);
      await openSession(tokenRead);
      await openSession(undefined);
      const count = async (request: object) =>
        (await api().listSessions(root.key, { includeTotal: true, size: 1, ...request }))
          .pagination;
      expect(await count({})).toMatchObject({ totalItems: 3, totalPages: 3 });
      expect(await count({ state: "authorized" })).toMatchObject({ totalItems: 2 });
      expect((await count({ includeTotal: false }))?.totalItems).toBeUndefined();
    });

    it("filters by application and by state", async () => {
      const { root, shop, createApplication, openSession } = await createTenant();
      const other = await createApplication("public", tokenRead);
      await openSession(undefined, other);
      await openSession(tokenRead);
      await openSession(undefined);
      const list = (request: object) =>
        api()
          .listSessions(root.key, request)
          .then(({ data }) => data);
      expect(await list({})).toHaveLength(3);
      expect(await list({ applicationId: shop.id })).toHaveLength(2);
      expect(await list({ applicationId: shop.id.toUpperCase() })).toHaveLength(2);
      expect(await list({ state: "authorized" })).toMatchObject([{ state: "authorized" }]);
      expect(await list({ state: "unauthorized" })).toHaveLength(2);
      const filtered = await list({ applicationId: other.id, state: "unauthorized" });
      expect(filtered).toMatchObject([{ applicationId: other.id }]);
      expect(await list({ applicationId: newId(0) })).toEqual([]);
    });

    it("sees no expired or deleted session", async () => {
      const { root, shop } = await createTenant();
      const { id } = await api().createSession(shop.key);
      server().clock.advance(3 * minute);
      await expectRefused(api().getSession(root.key, { id }), "session_not_found");
      expect(await listIds(root.key)).toEqual([]);
    });

    it("sees no session of a deleted application", async () => {
      const { root, shop } = await createTenant();
      const { id } = await api().createSession(shop.key);
      await api().deleteApplication(root.key, shop);
      await expectRefused(api().getSession(root.key, { id }), "session_not_found");
      expect(await listIds(root.key)).toEqual([]);
    });

    it("sees and deletes nothing of other tenants", async () => {
      const { shop } = await createTenant();
      const { id, sessionKey } = await api().createSession(shop.key);
      const other = await server().createTenant();
      expect(await listIds(other.key)).toEqual([]);
      expect(await listIds(other.key, { applicationId: shop.id })).toEqual([]);
      await expectRefused(api().getSession(other.key, { id }), "session_not_found");
      await expectRefused(api().deleteSession(other.key, { id }), "session_not_found");
      const revocation = api().revokeAllSessions(other.key, shop);
      await expectRefused(revocation, "application_not_found");
      await expect(api().whoAmI(sessionKey)).resolves.toBeDefined();
    });

    it("cannot use a cursor that was changed or belongs to another tenant", async () => {
      const { root, shop } = await createTenant();
      const opened = [await api().createSession(shop.key), await api().createSession(shop.key)];
      expect(opened).toHaveLength(2);
      const { pagination } = await api().listSessions(root.key, { size: 1 });
      const start = pagination?.next ?? "";
      const other = await server().createTenant();
      for (const [key, cursor] of [
        [other.key, start],
        [root.key, `${start}A`],
        [root.key, "?"],
      ] as const) {
        const call = api().listSessions(key, { start: cursor });
        expect((await expectRefused(call, "invalid_request")).errors).toHaveProperty("start");
      }
    });

    it("needs session:read to see sessions, and session:delete to delete them", async () => {
      const { root, shop, createApplication } = await createTenant();
      const { id } = await api().createSession(shop.key);
      const reader = await createApplication("private", { permissions: ["session:read"] });
      const deleter = await createApplication("private", { permissions: ["session:delete"] });
      await expect(api().getSession(reader.key, { id })).resolves.toBeDefined();
      await expectRefused(api().deleteSession(reader.key, { id }), "permission_denied");
      await expectRefused(api().revokeAllSessions(reader.key, shop), "permission_denied");
      await expectRefused(api().getSession(deleter.key, { id }), "permission_denied");
      await expectRefused(api().listSessions(deleter.key), "permission_denied");
      await api().deleteSession(deleter.key, { id });
      expect(await listIds(root.key)).toEqual([]);
    });

    it("cannot grant these permissions to public applications", async () => {
      const { root } = await createTenant();
      for (const permission of ["session:read", "session:delete"]) {
        const request = { name: "shop", type: "public", permissions: [permission] };
        await expectRefused(api().createApplication(root.key, request), "invalid_request");
      }
    });
  });

  describe("deleting a session", () => {
    it("revokes its key and nonce at once", async () => {
      const { root, shop, backend, openSession } = await createTenant();
      const authorized = await openSession(tokenRead);
      const { id, nonce } = await api().createSession(shop.key);
      const { sessionId = "" } = await api().whoAmI(authorized.key);
      await api().deleteSession(root.key, { id: sessionId });
      await expectRefused(api().whoAmI(authorized.key), "unauthenticated");
      await api().deleteSession(root.key, { id });
      const call = api().authorizeSession(backend.key, { nonce, ...tokenRead });
      await expectRefused(call, "nonce_not_found");
      await expectRefused(api().deleteSession(root.key, { id }), "session_not_found");
    });
  });

  describe("a session", () => {
    it("revokes itself without a permission, authorized or not", async () => {
      const { root, openSession } = await createTenant();
      for (const grants of [undefined, tokenRead]) {
        const { key } = await openSession(grants);
        const { sessionId = "" } = await api().whoAmI(key);
        await api().deleteSession(key, { id: sessionId.toUpperCase() });
        await expectRefused(api().whoAmI(key), "unauthenticated");
        await expectRefused(api().deleteSession(key, { id: sessionId }), "unauthenticated");
      }
      expect(await listIds(root.key)).toEqual([]);
    });

    it("revokes no other session without session:delete", async () => {
      const { root, shop, openSession } = await createTenant();
      const { id } = await api().createSession(shop.key);
      for (const grants of [undefined, tokenRead]) {
        const { key } = await openSession(grants);
        await expectRefused(api().deleteSession(key, { id }), "permission_denied");
        await expectRefused(api().deleteSession(key, { id: newId(0) }), "permission_denied");
      }
      expect(await listIds(root.key)).toContain(id);
    });

    it("revokes itself even if its application holds permissions that it does not", async () => {
      const { createApplication, openSession } = await createTenant();
      const reader = await createApplication("public", { permissions: ["application:read"] });
      const { key } = await openSession(tokenRead, reader);
      const { sessionId = "" } = await api().whoAmI(key);
      await api().deleteSession(key, { id: sessionId });
      await expectRefused(api().whoAmI(key), "unauthenticated");
    });
  });

  describe("revoking all sessions of an application", () => {
    it("revokes the open ones at once, and no others", async () => {
      const { root, shop, backend, createApplication, openSession } = await createTenant();
      const other = await createApplication("public", tokenRead);
      const untouched = await openSession(tokenRead, other);
      const [authorized, pending] = [await openSession(tokenRead), await openSession()];
      await api().revokeAllSessions(root.key, shop);
      await expectRefused(api().whoAmI(authorized.key), "unauthenticated");
      await expectRefused(api().whoAmI(pending.key), "unauthenticated");
      const call = api().authorizeSession(backend.key, { nonce: pending.nonce, ...tokenRead });
      await expectRefused(call, "nonce_not_found");
      await expect(api().whoAmI(untouched.key)).resolves.toBeDefined();
      expect(await listIds(root.key, { applicationId: shop.id })).toEqual([]);
    });

    it("revokes those that it authorized, unless only those that it opened are meant", async () => {
      const { root, shop, backend, createApplication, openSession } = await createTenant();
      const other = await createApplication("private", tokenRead);
      const authorized = await openSession(tokenRead);
      const pending = await openSession();
      const { nonce, sessionKey } = await api().createSession(shop.key);
      await api().authorizeSession(other.key, { nonce, ...tokenRead });

      const openedOnly = { id: backend.id, openedOnly: true };
      expect((await api().revokeAllSessions(root.key, openedOnly)).count).toBe(0);
      await expect(api().whoAmI(authorized.key)).resolves.toBeDefined();

      server().clock.advance(1_000);
      const response = await api().revokeAllSessions(root.key, { id: backend.id.toUpperCase() });
      expectValid(RevokeAllSessionsResponseSchema, response);
      expect(response).toMatchObject({
        revokedBefore: timestampFromMs(server().clock.now()),
        count: 1,
      });
      await expectRefused(api().whoAmI(authorized.key), "unauthenticated");
      const check = { permission: "token:read", key: authorized.key };
      expect(await api().checkAccess(root.key, check)).toMatchObject({ allowed: false });
      await expect(api().whoAmI(sessionKey)).resolves.toBeDefined();
      expect(await listIds(root.key)).toHaveLength(2);
      expect(await listIds(root.key, { authorizedBy: backend.id })).toEqual([]);
      expect((await api().getOverview(root.key)).sessions?.open).toBe(2);
      await api().authorizeSession(backend.key, { nonce: pending.nonce, ...tokenRead });
      await expect(api().whoAmI(pending.key)).resolves.toMatchObject({ authorized: true });
    });

    it("reports how many it opened, before which time they are refused", async () => {
      const { root, shop, openSession } = await createTenant();
      await openSession(tokenRead);
      await openSession();
      expect(await api().revokeAllSessions(root.key, shop)).toMatchObject({
        revokedBefore: timestampFromMs(server().clock.now()),
        count: 2,
      });
      expect((await api().revokeAllSessions(root.key, shop)).count).toBe(0);
    });

    it("allows new ones, and keeps the application's key", async () => {
      const { root, shop, openSession } = await createTenant();
      await api().revokeAllSessions(root.key, shop);
      const { key } = await openSession(tokenRead);
      await expect(api().whoAmI(key)).resolves.toMatchObject({ authorized: true });
      await expect(api().whoAmI(shop.key)).resolves.toBeDefined();
      expect(await listIds(root.key, { applicationId: shop.id })).toHaveLength(1);
    });
  });
}
