import { durationFromMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { keyOf } from "../../support/api/api.js";
import { tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";
import { createTenant as fillTenant } from "./tenant.js";

const hour = 3_600_000;
const gracePeriod = durationFromMs(hour);

/** Keys of applications, from one to the next. */
export function describeKeyRotation({ server, api, refused }: ApiSubject): void {
  const createTenant = () => fillTenant(server(), api());

  /** A tenant with an application whose key was replaced with an hour of grace. */
  async function rotated() {
    const tenant = await createTenant();
    const { id, key: first } = await tenant.make("private", { permissions: ["application:read"] });
    const second = keyOf(
      await api().regenerateApplicationKey(tenant.root.key, { id, gracePeriod }),
    );
    return { ...tenant, id, first, second };
  }

  async function keysOf(key: string, id: string) {
    return (await api().listApplicationKeys(key, { id })).data;
  }

  const works = (key: string) => expect(api().whoAmI(key)).resolves.toBeDefined();
  const isRefused = (key: string) => refused(api().whoAmI(key), "unauthenticated");

  describe("regenerating with a grace period", () => {
    it("keeps both keys valid until the old one expires", async () => {
      const { first, second } = await rotated();
      await works(first);
      await works(second);
      server().clock.advance(hour - 1);
      await works(first);
      server().clock.advance(1);
      await isRefused(first);
      await works(second);
    });

    it("returns the expiry to the holder of the old key and to its checks", async () => {
      const { root, first, second } = await rotated();
      const expiresAt = timestampFromMs(server().clock.now() + hour);
      expect((await api().whoAmI(first)).expiresAt).toEqual(expiresAt);
      expect((await api().whoAmI(second)).expiresAt).toBeUndefined();
      const check = { key: first, permission: "application:read" };
      expect(await api().checkAccess(root.key, check)).toMatchObject({ allowed: true, expiresAt });
      server().clock.advance(hour);
      expect(await api().checkAccess(root.key, check)).toMatchObject({ reason: "expired" });
    });

    it("of 0s revokes every earlier key at once", async () => {
      const { root, id, first, second } = await rotated();
      const third = keyOf(
        await api().regenerateApplicationKey(root.key, { id, gracePeriod: durationFromMs(0) }),
      );
      await isRefused(first);
      await isRefused(second);
      await works(third);
    });

    it.each([
      [1, "at least 1s"],
      [999, "at least 1s"],
      [-1_000, ""],
      [30 * 24 * hour + 1_000, "2592000s"],
    ])("of %d ms is refused and changes nothing", async (milliseconds, words) => {
      const { root, id, first, second } = await rotated();
      const gracePeriod = durationFromMs(milliseconds);
      const call = api().regenerateApplicationKey(root.key, { id, gracePeriod });
      const { errors } = await refused(call, "invalid_request");
      expect(errors).toEqual({ grace_period: [expect.stringContaining(words)] });
      await Promise.all([first, second].map(works));
    });

    it("keeps an earlier expiry of a key", async () => {
      const { root, id, first, second } = await rotated();
      await api().regenerateApplicationKey(root.key, { id, gracePeriod: durationFromMs(2 * hour) });
      server().clock.advance(hour);
      await isRefused(first);
      await works(second);
      server().clock.advance(hour);
      await isRefused(second);
    });

    it("is refused if three keys are valid, and changes nothing", async () => {
      const { root, id, first, second } = await rotated();
      const third = keyOf(await api().regenerateApplicationKey(root.key, { id, gracePeriod }));
      await refused(api().regenerateApplicationKey(root.key, { id, gracePeriod }), "too_many_keys");
      await Promise.all([first, second, third].map(works));
      server().clock.advance(hour);
      await api().regenerateApplicationKey(root.key, { id, gracePeriod });
      expect(await keysOf(root.key, id)).toHaveLength(2);
    });

    it("never leaves a key that nobody received, when several callers do it at once", async () => {
      const { root, make } = await createTenant();
      const { id, key } = await make("private", tokenRead);
      const tries = await Promise.allSettled(
        Array.from({ length: 6 }, () =>
          api().regenerateApplicationKey(root.key, { id, gracePeriod }),
        ),
      );
      const made = tries.flatMap((tried) =>
        tried.status === "fulfilled" ? [keyOf(tried.value)] : [],
      );
      expect(made).toHaveLength(2);
      await Promise.all([key, ...made].map(works));
      expect(await keysOf(root.key, id)).toHaveLength(3);
    });
  });

  describe("regenerating without a grace period", () => {
    it("revokes every earlier key at once", async () => {
      const { root, id, first, second } = await rotated();
      const third = keyOf(await api().regenerateApplicationKey(root.key, { id }));
      await isRefused(first);
      await isRefused(second);
      await works(third);
      expect(await keysOf(root.key, id)).toHaveLength(1);
    });
  });

  describe("the keys of an application", () => {
    it("are listed newest first, with their expiry, without secrets", async () => {
      const { root, id, first, second } = await rotated();
      const keys = await keysOf(root.key, id);
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

    it("are only the valid ones", async () => {
      const { root, id } = await rotated();
      server().clock.advance(hour);
      expect(await keysOf(root.key, id)).toHaveLength(1);
    });

    it("keep their creation time when another is created", async () => {
      const { root, make } = await createTenant();
      const { id } = await make("private", tokenRead);
      const [before] = await keysOf(root.key, id);
      server().clock.advance(1_000);
      await api().regenerateApplicationKey(root.key, { id, gracePeriod });
      const [made, older] = await keysOf(root.key, id);
      expect(older).toMatchObject({ id: before?.id, createdAt: before?.createdAt });
      expect(timestampMs(made?.createdAt as never)).toBe(server().clock.now());
    });

    it("are not visible to other tenants", async () => {
      const { id } = await rotated();
      const other = await server().createTenant();
      await refused(api().listApplicationKeys(other.key, { id }), "application_not_found");
    });

    it("need application:read to be listed, and application:update to be revoked", async () => {
      const { root, make, id } = await rotated();
      const [key] = await keysOf(root.key, id);
      const stranger = await make("private", tokenRead);
      await refused(api().listApplicationKeys(stranger.key, { id }), "permission_denied");
      const reader = await make("private", { permissions: ["application:read"] });
      const request = { id, keyId: key?.id ?? "" };
      await refused(api().deleteApplicationKey(reader.key, request), "permission_denied");
    });
  });

  describe("revoking a key", () => {
    it("revokes it at once, and the others stay valid", async () => {
      const { root, id, first, second } = await rotated();
      const [, older] = await keysOf(root.key, id);
      await api().deleteApplicationKey(root.key, { id, keyId: older?.id ?? "" });
      await isRefused(first);
      await works(second);
      expect(await keysOf(root.key, id)).toHaveLength(1);
    });

    it("can revoke the newest one and the last one", async () => {
      const { root, id, first, second } = await rotated();
      for (const { id: keyId } of await keysOf(root.key, id)) {
        await api().deleteApplicationKey(root.key, { id, keyId });
      }
      await isRefused(first);
      await isRefused(second);
      const { key } = await api().regenerateApplicationKey(root.key, { id });
      await works(key as string);
    });

    it("returns 404 for another application's key and for a revoked one", async () => {
      const { root, id, backend } = await rotated();
      const [, older] = await keysOf(root.key, id);
      const [foreign] = await keysOf(root.key, backend.id);
      server().clock.advance(hour);
      for (const keyId of [older?.id, foreign?.id, newId(Date.now())]) {
        const call = api().deleteApplicationKey(root.key, { id, keyId: keyId ?? "" });
        await refused(call, "key_not_found");
      }
    });

    it("does not affect sessions", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const session = await tenant.open(tokenRead);
      const [key] = await keysOf(root.key, shop.id);
      await api().deleteApplicationKey(root.key, { id: shop.id, keyId: key?.id ?? "" });
      await isRefused(shop.key);
      await works(session.key);
    });
  });
}
