import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { containerRule, tokenRead, without } from "./grants.js";
import { keyHoldersOf } from "./key-holders.js";
import type { ApiSubject } from "./subject.js";

const minute = 60_000;

/** What changes an application, or ends it. */
export function describeChanging(subject: ApiSubject): void {
  const { server, api, refused } = subject;
  const { createTenant, openSession } = keyHoldersOf(subject);

  describe("updating an application", () => {
    it("replaces name, permissions and rules as a whole, and nothing else", async () => {
      const { root, publicOne, publicKey } = await createTenant();
      server().clock.advance(1);
      const rules = [containerRule];
      const updated = await api().updateApplication(root.key, {
        id: publicOne.id,
        name: "renamed",
        rules,
      });
      const { key: _key, ...before } = publicOne;
      expect(updated).toEqual({
        ...before,
        version: expect.any(String),
        name: "renamed",
        permissions: [],
        rules: [expect.objectContaining(containerRule)],
        modifiedBy: root.applicationId,
        modifiedAt: timestampFromMs(server().clock.now()),
      });
      expect(await api().getApplication(root.key, publicOne)).toEqual(updated);
      await refused(api().getApplicationByKey(publicKey), "permission_denied");
    });

    it("is visible at once, however often the application was read before", async () => {
      const { root, publicOne, publicKey } = await createTenant();
      const read = async () =>
        Promise.all([
          api().getApplication(root.key, publicOne),
          api().getApplicationByKey(publicKey),
        ]);
      const permissions = ["application:read"];
      for (const name of ["first", "second", "third"]) {
        await api().updateApplication(root.key, { id: publicOne.id, name, permissions });
        for (let reading = 0; reading < 10; reading++) {
          const [byId, byKey] = await read();
          expect([byId.name, byKey.name]).toEqual([name, name]);
          expect(byKey).toEqual(byId);
        }
      }
    });

    it.each<[what: string, field: string, change: object]>([
      ["no name", "name", { name: "" }],
      ["a name of 201 characters", "name", { name: "x".repeat(201) }],
      ["neither permissions nor rules", "request", { permissions: [] }],
      ["a rule without container", "rules[0].container", { rules: [without("container")] }],
      ["what a public one cannot hold", "permissions[0]", { permissions: ["application:delete"] }],
    ])("with %s is refused and changes nothing", async (_what, field, change) => {
      const { root, publicOne } = await createTenant();
      const request = { id: publicOne.id, name: "renamed", ...tokenRead, ...change };
      const { errors } = await refused(
        api().updateApplication(root.key, request),
        "invalid_request",
      );
      expect(Object.keys(errors)).toContain(field);
      expect(await api().getApplication(root.key, publicOne)).toMatchObject({
        name: publicOne.name,
        permissions: publicOne.permissions,
      });
    });

    it("cannot grant a permission of this service that the caller lacks", async () => {
      const { root, make } = await createTenant();
      const updater = await make("management", ["application:update"]);
      const target = await make("private");
      const permissions = ["application:delete"];
      const request = { id: target.id, name: "a", permissions };
      await refused(api().updateApplication(updater.key, request), "permission_denied");
      expect((await api().getApplication(root.key, target)).permissions).toEqual(
        target.permissions,
      );
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicOne, root } = await createTenant();
      const other = await server().createTenant();
      const request = { id: publicOne.id, name: "mine now", ...tokenRead };
      await refused(api().updateApplication(other.key, request), "application_not_found");
      expect((await api().getApplication(root.key, publicOne)).name).toBe(publicOne.name);
    });

    it("needs application:update", async () => {
      const { privateKey, publicOne } = await createTenant();
      const request = { id: publicOne.id, name: "a", ...tokenRead };
      await refused(api().updateApplication(privateKey, request), "permission_denied");
    });
  });

  describe("regenerating a key", () => {
    it("returns a new key and revokes the old one at once", async () => {
      const { root, publicOne, publicKey } = await createTenant();
      const { key, ...rest } = await api().regenerateApplicationKey(root.key, publicOne);
      expect(rest).toMatchObject({ id: publicOne.id, modifiedBy: root.applicationId });
      expect(key).not.toBe(publicKey);
      await refused(api().getApplicationByKey(publicKey), "unauthenticated");
      expect(await api().getApplicationByKey(key)).toEqual(rest);
    });

    it("does not affect sessions", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      await api().regenerateApplicationKey(tenant.root.key, tenant.publicOne);
      await expect(api().getApplicationByKey(session.key)).resolves.toBeDefined();
    });

    it("lets a caller renew its own key", async () => {
      const root = await server().createTenant();
      const { key } = await api().regenerateApplicationKey(root.key, { id: root.applicationId });
      await refused(api().getApplicationByKey(root.key), "unauthenticated");
      await expect(api().getApplicationByKey(key)).resolves.toBeDefined();
    });

    it("cannot take over permissions that the caller lacks", async () => {
      const { root, make } = await createTenant();
      const updater = await make("management", ["application:update"]);
      const call = api().regenerateApplicationKey(updater.key, { id: root.applicationId });
      expect((await refused(call, "permission_denied")).message).toContain("application:create");
      await expect(api().getApplicationByKey(root.key)).resolves.toBeDefined();
    });

    it("leaves one valid key when two callers do it at once", async () => {
      const { root, publicOne } = await createTenant();
      const made = await Promise.all(
        Array.from({ length: 5 }, () => api().regenerateApplicationKey(root.key, publicOne)),
      );
      const tries = await Promise.allSettled(made.map(({ key }) => api().getApplicationByKey(key)));
      expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicOne, publicKey } = await createTenant();
      const other = await server().createTenant();
      await refused(api().regenerateApplicationKey(other.key, publicOne), "application_not_found");
      await expect(api().getApplicationByKey(publicKey)).resolves.toBeDefined();
    });

    it("needs application:update", async () => {
      const { privateKey, publicOne } = await createTenant();
      await refused(api().regenerateApplicationKey(privateKey, publicOne), "permission_denied");
    });
  });

  describe("deleting an application", () => {
    it("revokes its key at once, and the application is gone", async () => {
      const { root, publicOne, publicKey } = await createTenant();
      await api().deleteApplication(root.key, publicOne);
      await refused(api().getApplicationByKey(publicKey), "unauthenticated");
      await refused(api().getApplication(root.key, publicOne), "application_not_found");
      await refused(api().deleteApplication(root.key, publicOne), "application_not_found");
    });

    it("revokes its sessions and their nonces at once", async () => {
      const tenant = await createTenant();
      const [open, authorized] = [await openSession(tenant), await openSession(tenant)];
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: authorized.nonce, permissions });
      await api().deleteApplication(tenant.root.key, tenant.publicOne);
      await refused(api().getApplicationByKey(authorized.key), "unauthenticated");
      const late = api().authorizeSession(tenant.privateKey, { nonce: open.nonce, permissions });
      await refused(late, "nonce_not_found");
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicOne, publicKey } = await createTenant();
      const other = await server().createTenant();
      await refused(api().deleteApplication(other.key, publicOne), "application_not_found");
      await expect(api().getApplicationByKey(publicKey)).resolves.toBeDefined();
    });

    it("needs application:delete", async () => {
      const { privateKey, publicOne } = await createTenant();
      await refused(api().deleteApplication(privateKey, publicOne), "permission_denied");
    });
  });

  describe("an application that expires", () => {
    it("works to the last millisecond and no longer", async () => {
      const { root } = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const permissions = ["application:read"];
      const request = { name: "brief", type: "private", permissions, expiresAt };
      const made = await api().createApplication(root.key, request);
      server().clock.advance(minute - 1);
      await expect(api().getApplicationByKey(made.key)).resolves.toBeDefined();
      server().clock.advance(1);
      await refused(api().getApplicationByKey(made.key), "unauthenticated");
      await refused(api().getApplication(root.key, made), "application_not_found");
    });

    it("expires with its sessions", async () => {
      const { root, privateKey } = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + 1_000);
      const request = { name: "brief", type: "public", ...tokenRead, expiresAt };
      const made = await api().createApplication(root.key, request);
      const session = await api().createSession(made.key);
      const permissions = ["application:read"];
      await api().authorizeSession(privateKey, { nonce: session.nonce, permissions });
      await expect(api().getApplicationByKey(session.sessionKey)).resolves.toBeDefined();
      server().clock.advance(1_000);
      await refused(api().getApplicationByKey(session.sessionKey), "unauthenticated");
    });
  });
}
