import { durationFromMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { keyOf } from "../../support/api/api.js";
import { type ApiSubject, seedTenant, tokenRead } from "./fixtures.js";

const hour = 3_600_000;
const gracePeriod = durationFromMs(hour);

export function describeKeyRotation({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  /** Creates an application and regenerates its key with a grace period of an hour. */
  async function createRotated() {
    const tenant = await createTenant();
    const { id, key: first } = await tenant.createApplication("private", {
      permissions: ["application:read"],
    });
    const second = keyOf(
      await api().regenerateApplicationKey(tenant.root.key, { id, gracePeriod }),
    );
    return { ...tenant, id, first, second };
  }

  async function listKeys(key: string, id: string) {
    return (await api().listApplicationKeys(key, { id })).data;
  }

  const expectValidKey = (key: string) => expect(api().whoAmI(key)).resolves.toBeDefined();
  const expectInvalidKey = (key: string) => expectRefused(api().whoAmI(key), "unauthenticated");

  describe("regenerating with a grace period", () => {
    it("keeps both keys valid until the old one expires", async () => {
      const { first, second } = await createRotated();
      await expectValidKey(first);
      await expectValidKey(second);
      server().clock.advance(hour - 1);
      await expectValidKey(first);
      server().clock.advance(1);
      await expectInvalidKey(first);
      await expectValidKey(second);
    });

    it("returns the expiry of the old key in whoami and in checks", async () => {
      const { root, first, second } = await createRotated();
      const expiresAt = timestampFromMs(server().clock.now() + hour);
      expect((await api().whoAmI(first)).expiresAt).toEqual(expiresAt);
      expect((await api().whoAmI(second)).expiresAt).toBeUndefined();
      const check = { key: first, permission: "application:read" };
      expect(await api().checkAccess(root.key, check)).toMatchObject({ allowed: true, expiresAt });
      server().clock.advance(hour);
      expect(await api().checkAccess(root.key, check)).toMatchObject({ reason: "expired" });
    });

    it("revokes every earlier key at once if the grace period is 0s", async () => {
      const { root, id, first, second } = await createRotated();
      const third = keyOf(
        await api().regenerateApplicationKey(root.key, { id, gracePeriod: durationFromMs(0) }),
      );
      await expectInvalidKey(first);
      await expectInvalidKey(second);
      await expectValidKey(third);
    });

    it.each([
      [1, "at least 1s"],
      [999, "at least 1s"],
      [-1_000, ""],
      [30 * 24 * hour + 1_000, "2592000s"],
    ])("refuses a grace period of %d ms and changes nothing", async (milliseconds, detail) => {
      const { root, id, first, second } = await createRotated();
      const gracePeriod = durationFromMs(milliseconds);
      const call = api().regenerateApplicationKey(root.key, { id, gracePeriod });
      const { errors } = await expectRefused(call, "invalid_request");
      expect(errors).toEqual({ grace_period: [expect.stringContaining(detail)] });
      await Promise.all([first, second].map(expectValidKey));
    });

    it("keeps an earlier expiry of a key", async () => {
      const { root, id, first, second } = await createRotated();
      await api().regenerateApplicationKey(root.key, { id, gracePeriod: durationFromMs(2 * hour) });
      server().clock.advance(hour);
      await expectInvalidKey(first);
      await expectValidKey(second);
      server().clock.advance(hour);
      await expectInvalidKey(second);
    });

    it("is refused if three keys are valid, and changes nothing", async () => {
      const { root, id, first, second } = await createRotated();
      const third = keyOf(await api().regenerateApplicationKey(root.key, { id, gracePeriod }));
      await expectRefused(
        api().regenerateApplicationKey(root.key, { id, gracePeriod }),
        "too_many_keys",
      );
      await Promise.all([first, second, third].map(expectValidKey));
      server().clock.advance(hour);
      await api().regenerateApplicationKey(root.key, { id, gracePeriod });
      expect(await listKeys(root.key, id)).toHaveLength(2);
    });

    it("returns every key that concurrent calls create", async () => {
      const { root, createApplication } = await createTenant();
      const { id, key } = await createApplication("private", tokenRead);
      const results = await Promise.allSettled(
        Array.from({ length: 6 }, () =>
          api().regenerateApplicationKey(root.key, { id, gracePeriod }),
        ),
      );
      const created = results.flatMap((result) =>
        result.status === "fulfilled" ? [keyOf(result.value)] : [],
      );
      expect(created).toHaveLength(2);
      await Promise.all([key, ...created].map(expectValidKey));
      expect(await listKeys(root.key, id)).toHaveLength(3);
    });
  });

  describe("regenerating without a grace period", () => {
    it("revokes every earlier key at once", async () => {
      const { root, id, first, second } = await createRotated();
      const third = keyOf(await api().regenerateApplicationKey(root.key, { id }));
      await expectInvalidKey(first);
      await expectInvalidKey(second);
      await expectValidKey(third);
      expect(await listKeys(root.key, id)).toHaveLength(1);
    });
  });

  describe("the keys of an application", () => {
    it("are listed newest first, with their expiry, without secrets", async () => {
      const { root, id, first, second } = await createRotated();
      const keys = await listKeys(root.key, id);
      expect(keys).toMatchObject([
        { createdAt: timestampFromMs(server().clock.now()) },
        { expiresAt: timestampFromMs(server().clock.now() + hour) },
      ]);
      expect(keys[0]?.expiresAt).toBeUndefined();
      expect(keys[0]?.id).not.toBe(keys[1]?.id);
      const text = JSON.stringify(keys, (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      expect(text).not.toContain(first.slice(-39));
      expect(text).not.toContain(second.slice(-39));
    });

    it("are listed only while they are valid", async () => {
      const { root, id } = await createRotated();
      server().clock.advance(hour);
      expect(await listKeys(root.key, id)).toHaveLength(1);
    });

    it("keep their creation time when another is created", async () => {
      const { root, createApplication } = await createTenant();
      const { id } = await createApplication("private", tokenRead);
      const [before] = await listKeys(root.key, id);
      server().clock.advance(1_000);
      await api().regenerateApplicationKey(root.key, { id, gracePeriod });
      const [newest, older] = await listKeys(root.key, id);
      expect(older).toMatchObject({ id: before?.id, createdAt: before?.createdAt });
      expect(timestampMs(newest?.createdAt as never)).toBe(server().clock.now());
    });

    it("returns pages by cursor, and continues after a key that was revoked", async () => {
      const { root, id } = await createRotated();
      await api().regenerateApplicationKey(root.key, { id, gracePeriod });
      const ids = (await listKeys(root.key, id)).map((key) => key.id);
      expect(ids).toHaveLength(3);
      const list = (request: object) => api().listApplicationKeys(root.key, { id, ...request });
      const first = await list({ size: 1 });
      expect(first.data.map((key) => key.id)).toEqual(ids.slice(0, 1));
      expect(first.pagination).toMatchObject({ totalItems: 3, totalPages: 3, pageSize: 1 });
      const start = first.pagination?.next;
      const second = await list({ size: 1, start });
      expect(second.data.map((key) => key.id)).toEqual(ids.slice(1, 2));
      expect(second.pagination?.totalItems).toBeUndefined();
      const last = await list({ start });
      expect(last.data.map((key) => key.id)).toEqual(ids.slice(1));
      expect(last.pagination?.next).toBeUndefined();
      server().clock.advance(1);
      await api().regenerateApplicationKey(root.key, { id });
      const { data } = await list({ start });
      expect(data.map((key) => key.id)).toEqual([]);
    });

    it("are not visible to other tenants", async () => {
      const { id } = await createRotated();
      const other = await server().createTenant();
      await expectRefused(api().listApplicationKeys(other.key, { id }), "application_not_found");
    });

    it("need application:read to be listed, and application:update to be revoked", async () => {
      const { root, createApplication, id } = await createRotated();
      const [key] = await listKeys(root.key, id);
      const unprivileged = await createApplication("private", tokenRead);
      await expectRefused(api().listApplicationKeys(unprivileged.key, { id }), "permission_denied");
      const reader = await createApplication("private", { permissions: ["application:read"] });
      const request = { id, keyId: key?.id ?? "" };
      await expectRefused(api().deleteApplicationKey(reader.key, request), "permission_denied");
    });
  });

  describe("revoking a key", () => {
    it("revokes it at once, and the others stay valid", async () => {
      const { root, id, first, second } = await createRotated();
      const [, older] = await listKeys(root.key, id);
      await api().deleteApplicationKey(root.key, { id, keyId: older?.id ?? "" });
      await expectInvalidKey(first);
      await expectValidKey(second);
      expect(await listKeys(root.key, id)).toHaveLength(1);
    });

    it("works for the newest key and for the last one", async () => {
      const { root, id, first, second } = await createRotated();
      for (const { id: keyId } of await listKeys(root.key, id)) {
        await api().deleteApplicationKey(root.key, { id, keyId });
      }
      await expectInvalidKey(first);
      await expectInvalidKey(second);
      const { key } = await api().regenerateApplicationKey(root.key, { id });
      await expectValidKey(key as string);
    });

    it("returns 404 for another application's key and for a revoked one", async () => {
      const { root, id, backend } = await createRotated();
      const [, older] = await listKeys(root.key, id);
      const [foreign] = await listKeys(root.key, backend.id);
      server().clock.advance(hour);
      for (const keyId of [older?.id, foreign?.id, newId(Date.now())]) {
        const call = api().deleteApplicationKey(root.key, { id, keyId: keyId ?? "" });
        await expectRefused(call, "key_not_found");
      }
    });

    it("does not affect sessions", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const session = await tenant.openSession(tokenRead);
      const [key] = await listKeys(root.key, shop.id);
      await api().deleteApplicationKey(root.key, { id: shop.id, keyId: key?.id ?? "" });
      await expectInvalidKey(shop.key);
      await expectValidKey(session.key);
    });
  });
}
