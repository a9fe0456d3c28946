import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type Key, type KeyWithHeaders, keyOf } from "../../support/api/api.js";
import { type ApiSubject, seedTenant, tokenRead } from "./fixtures.js";

const day = 24 * 3_600_000;
const request = { name: "only one", type: "private", ...tokenRead };

/** Sends an Idempotency-Key with each call, and counts the replayed responses. */
function withIdempotencyKey(key: string, idempotencyKey: string = randomUUID()) {
  const credentials = {
    key,
    headers: { "Idempotency-Key": idempotencyKey },
    idempotencyKey,
    replays: 0,
    onHeaders(headers: Headers) {
      credentials.replays += headers.get("idempotent-replayed") === "true" ? 1 : 0;
    },
  };
  return credentials satisfies KeyWithHeaders;
}

export function describeIdempotency({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  const listCreated = async (key: Key) =>
    (await api().listApplications(key)).data.filter(({ name }) => name === request.name);

  describe("a call repeated with its Idempotency-Key", () => {
    it("creates one application, and returns its id and key each time", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const first = await api().createApplication(once, request);
      expect(once.replays).toBe(0);
      for (let count = 1; count < 4; count++) {
        expect(await api().createApplication(once, request)).toEqual(first);
        expect(once.replays).toBe(count);
      }
      expect(await listCreated(root.key)).toHaveLength(1);
      await expect(api().whoAmI(keyOf(first))).resolves.toMatchObject({ applicationId: first.id });
    });

    it("is the same call with the key in double quotes", async () => {
      const { root } = await createTenant();
      const bare = withIdempotencyKey(root.key, `a"b\\${randomUUID()}`);
      const quoted = withIdempotencyKey(
        root.key,
        `"${bare.idempotencyKey.replace(/["\\]/g, "\\$&")}"`,
      );
      const first = await api().createApplication(quoted, request);
      expect(await api().createApplication(bare, request)).toEqual(first);
      expect(await api().createApplication(quoted, request)).toEqual(first);
      expect([bare.replays, quoted.replays]).toEqual([1, 1]);
      expect(await listCreated(root.key)).toHaveLength(1);
    });

    it("changes an application once, even if it was changed since", async () => {
      const { root, shop } = await createTenant();
      const change = { id: shop.id, name: "renamed", ...tokenRead };
      const once = withIdempotencyKey(root.key);
      const first = await api().updateApplication(once, change);
      await api().updateApplication(root.key, { ...change, name: "renamed again" });
      expect(await api().updateApplication(once, change)).toEqual(first);
      expect(once.replays).toBe(1);
      expect((await api().getApplication(root.key, shop)).name).toBe("renamed again");
    });

    it("creates one new valid key", async () => {
      const { root, shop } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const first = await api().regenerateApplicationKey(once, { id: shop.id });
      expect(await api().regenerateApplicationKey(once, { id: shop.id })).toEqual(first);
      await expect(api().whoAmI(keyOf(first))).resolves.toBeDefined();
      expect((await api().listApplicationKeys(root.key, { id: shop.id })).data).toHaveLength(1);
    });

    it("disables and enables once", async () => {
      const { root, shop } = await createTenant();
      const [disable, enable] = [withIdempotencyKey(root.key), withIdempotencyKey(root.key)];
      const disabled = await api().disableApplication(disable, { id: shop.id });
      const enabled = await api().enableApplication(enable, { id: shop.id });
      expect(await api().disableApplication(disable, { id: shop.id })).toEqual(disabled);
      expect(await api().enableApplication(enable, { id: shop.id })).toEqual(enabled);
      expect((await api().getApplication(root.key, shop)).version).toBe(enabled.version);
    });

    it("creates one session, and authorizes it once", async () => {
      const { shop, backend } = await createTenant();
      const open = withIdempotencyKey(shop.key);
      const session = await api().createSession(open);
      expect(await api().createSession(open)).toEqual(session);
      const grant = { nonce: session.nonce, ...tokenRead };
      const authorize = withIdempotencyKey(backend.key);
      for (let call = 0; call < 2; call++) {
        const { sessionId } = await api().authorizeSession(authorize, grant);
        expect(sessionId).toBe(session.id);
      }
      expect([open.replays, authorize.replays]).toEqual([1, 1]);
      await expectRefused(api().authorizeSession(backend.key, grant), "nonce_used");
    });

    it("is replayed for 24 hours, and executed again after that", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const first = await api().createApplication(once, request);
      server().clock.advance(day - 1);
      expect(await api().createApplication(once, request)).toEqual(first);
      server().clock.advance(1);
      const second = await api().createApplication(once, request);
      expect([second.id === first.id, second.key === first.key]).toEqual([false, false]);
      expect(once.replays).toBe(1);
      expect(await api().createApplication(once, request)).toEqual(second);
      expect(await listCreated(root.key)).toHaveLength(2);
    });

    it("is executed once for twenty simultaneous calls, which all get its response", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const created = await Promise.all(
        Array.from({ length: 20 }, () => api().createApplication(once, request)),
      );
      expect(new Set(created.map(({ id, key }) => `${id} ${key}`)).size).toBe(1);
      expect(once.replays).toBe(created.length - 1);
      expect(await listCreated(root.key)).toHaveLength(1);
      expect(await api().createApplication(once, request)).toEqual(created[0]);
    });

    it("writes one event, and a log line each time", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const lines = () =>
        server().logs.filter(
          (line) =>
            line.application_id === root.applicationId &&
            line.method === "latchkey.v1.ApplicationService/CreateApplication" &&
            line.code === "ok",
        ).length;
      const before = lines();
      const { id } = await api().createApplication(once, request);
      await api().createApplication(once, request);
      await api().createApplication(once, request);
      const { tenantId } = root;
      const { items } = await server().store.events.list({ tenantId, target: id, size: 10 });
      expect(items.map(({ kind }) => kind)).toEqual(["application.created"]);
      expect(lines() - before).toBe(3);
    });

    it("stores its response encrypted", async () => {
      const { root, shop } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const { key = "" } = await api().createApplication(once, request);
      const { sessionKey, nonce } = await api().createSession(withIdempotencyKey(shop.key));
      const bytes = await server().storedBytes();
      // Proves that the search finds plain text.
      expect(bytes.includes(request.name)).toBe(true);
      for (const secret of [key, root.key, sessionKey, nonce, once.idempotencyKey]) {
        expect(bytes.includes(secret)).toBe(false);
        expect(bytes.includes(secret.slice(-40))).toBe(false);
        expect(JSON.stringify(server().logs)).not.toContain(secret);
      }
    });
  });

  describe("an Idempotency-Key", () => {
    it("is refused if the request differs", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      await api().createApplication(once, request);
      for (const change of [{ type: "public" }, { permissions: ["token:use"] }]) {
        const other = { ...request, ...change };
        await expectRefused(api().createApplication(once, other), "idempotency_key_reused");
      }
      expect(await listCreated(root.key)).toHaveLength(1);
    });

    it("accepts a repeated request whose metadata arrive in another order", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const [team, env] = ["payments", "live"];
      const first = await api().createApplication(once, { ...request, metadata: { team, env } });
      const second = await api().createApplication(once, { ...request, metadata: { env, team } });
      expect(second.id).toBe(first.id);
    });

    it("is not consumed by a refused call", async () => {
      const { root, shop } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const stale = { id: shop.id, ifMatch: "no-version" };
      await expectRefused(api().disableApplication(once, stale), "version_mismatch");
      await expectRefused(api().disableApplication(once, stale), "version_mismatch");
      const { version } = await api().getApplication(root.key, shop);
      const disabled = await api().disableApplication(once, { id: shop.id, ifMatch: version });
      expect([disabled.status, once.replays]).toEqual(["disabled", 0]);
    });

    it("is separate for each caller", async () => {
      const { root, createApplication } = await createTenant();
      const other = await createApplication("management", {
        permissions: ["application:create", "token:read"],
      });
      const own = withIdempotencyKey(root.key);
      const theirs = withIdempotencyKey(other.key, own.idempotencyKey);
      const first = await api().createApplication(own, request);
      const second = await api().createApplication(theirs, request);
      expect(second.id).not.toBe(first.id);
      expect(theirs.replays).toBe(0);
    });

    it("is separate for each session, even of the same application", async () => {
      const { root, shop, createApplication, openSession } = await createTenant();
      const grants = { permissions: ["session:delete"] };
      const { key: backendKey } = await createApplication("private", grants);
      const target = await createApplication("public", tokenRead);
      const createSessionKey = async () => {
        const { key, nonce } = await openSession();
        await api().authorizeSession(backendKey, { nonce, ...grants });
        return key;
      };
      const own = withIdempotencyKey(await createSessionKey());
      const theirs = withIdempotencyKey(await createSessionKey(), own.idempotencyKey);
      await api().revokeAllSessions(own, { id: target.id });
      const { sessionKey } = await api().createSession(target.key);
      await api().revokeAllSessions(own, { id: target.id });
      await expect(api().whoAmI(sessionKey)).resolves.toBeDefined();
      await api().revokeAllSessions(theirs, { id: target.id });
      await expectRefused(api().whoAmI(sessionKey), "unauthenticated");
      expect([own.replays, theirs.replays]).toEqual([1, 0]);
      const { modifiedBy } = await api().getApplication(root.key, { id: target.id });
      expect(modifiedBy).toBe(shop.id);
    });

    it("is separate for each method", async () => {
      const { root, shop } = await createTenant();
      const once = withIdempotencyKey(root.key);
      expect((await api().disableApplication(once, { id: shop.id })).status).toBe("disabled");
      expect((await api().enableApplication(once, { id: shop.id })).status).toBe("enabled");
      expect(once.replays).toBe(0);
    });

    it("replays a response only to the API key that received it", async () => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key);
      const first = await api().createApplication(once, request);
      const gracePeriod = durationFromMs(3_600_000);
      const own = { id: root.applicationId, gracePeriod };
      const renewedKey = keyOf(await api().regenerateApplicationKey(root.key, own));
      const renewed = withIdempotencyKey(renewedKey, once.idempotencyKey);
      const failure = await expectRefused(
        api().createApplication(renewed, request),
        "idempotency_conflict",
      );
      expect(failure.message).toContain("another API key of the same application");
      expect(await listCreated(root.key)).toHaveLength(1);
      expect(await api().createApplication(once, request)).toEqual(first);
    });

    it("does not bypass authentication and authorization", async () => {
      const { root, createApplication } = await createTenant();
      const permissions = ["application:create", "token:read"];
      const creator = await createApplication("management", { permissions });
      const once = withIdempotencyKey(creator.key);
      await api().createApplication(once, request);
      const reduced = { id: creator.id, name: "reduced", ...tokenRead };
      await api().updateApplication(root.key, reduced);
      await expectRefused(api().createApplication(once, request), "permission_denied");
      await api().disableApplication(root.key, creator);
      await expectRefused(api().createApplication(once, request), "unauthenticated");
    });

    it.each([
      ["a space in it", "a b"],
      ["256 characters", "x".repeat(256)],
      ["an API key in it", "lk_prv_02wPAkn1mHXvAAyvJYd2tA3qPzD0Yt6LHr1bWfGx8EoSkVnUZcI5jM7T4e2Qw"],
      ["the start of a nonce in it", "retry-lk_non_1"],
    ])("is refused with %s, and changes nothing", async (_case, idempotencyKey) => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key, idempotencyKey);
      const { errors, message } = await expectRefused(
        api().createApplication(once, request),
        "invalid_request",
      );
      expect(Object.keys(errors)).toEqual(["Idempotency-Key"]);
      expect(message).not.toContain(idempotencyKey);
      expect(await listCreated(root.key)).toEqual([]);
    });

    it.each([
      ["one character", "!"],
      ["255 characters", "~".repeat(255)],
      ["all punctuation", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"],
    ])("may contain %s", async (_case, idempotencyKey) => {
      const { root } = await createTenant();
      const once = withIdempotencyKey(root.key, idempotencyKey);
      const first = await api().createApplication(once, request);
      expect(await api().createApplication(once, request)).toEqual(first);
      expect(once.replays).toBe(1);
    });

    it("is ignored by methods that do not support it", async () => {
      const { root, shop } = await createTenant();
      const once = withIdempotencyKey(root.key, "not valid anywhere else: a b");
      await api().getApplication(once, shop);
      await api().whoAmI(once);
      await api().deleteApplication(once, shop);
      await expectRefused(api().deleteApplication(once, shop), "application_not_found");
      expect(once.replays).toBe(0);
    });
  });
}
