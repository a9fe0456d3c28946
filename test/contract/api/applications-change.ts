import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  type ApiSubject,
  containerRule,
  createKeyFixtures,
  tokenRead,
  without,
} from "./fixtures.js";

const minute = 60_000;

export function describeApplicationChanges(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant, openSession } = createKeyFixtures(subject);

  describe("updating an application", () => {
    it("replaces name, permissions and rules, and nothing else", async () => {
      const { root, publicApp, publicKey } = await createTenant();
      server().clock.advance(1);
      const rules = [containerRule];
      const updated = await api().updateApplication(root.key, {
        id: publicApp.id,
        name: "renamed",
        rules,
      });
      const { key: _key, ...before } = publicApp;
      expect(updated).toEqual({
        ...before,
        version: expect.any(String),
        name: "renamed",
        permissions: [],
        rules: [expect.objectContaining(containerRule)],
        modifiedBy: root.applicationId,
        modifiedAt: timestampFromMs(server().clock.now()),
      });
      expect(await api().getApplication(root.key, publicApp)).toEqual(updated);
      await expectRefused(api().getApplicationByKey(publicKey), "permission_denied");
    });

    it("is visible at once, however often the application was read before", async () => {
      const { root, publicApp, publicKey } = await createTenant();
      const read = async () =>
        Promise.all([
          api().getApplication(root.key, publicApp),
          api().getApplicationByKey(publicKey),
        ]);
      const permissions = ["application:read"];
      for (const name of ["first", "second", "third"]) {
        await api().updateApplication(root.key, { id: publicApp.id, name, permissions });
        for (let i = 0; i < 10; i++) {
          const [byId, byKey] = await read();
          expect([byId.name, byKey.name]).toEqual([name, name]);
          expect(byKey).toEqual(byId);
        }
      }
    });

    it("with the values that it has keeps its version, and records no event", async () => {
      const { root } = await createTenant();
      const rules = [containerRule, { ...containerRule, priority: 2, description: "b" }];
      const { key: _, ...created } = await api().createApplication(root.key, {
        name: "one",
        type: "private",
        permissions: ["token:read", "token:create"],
        rules,
        description: "a",
        metadata: { team: "payments", tier: "gold" },
        allowedCidrs: ["192.0.2.0/24"],
        expiresAt: timestampFromMs(server().clock.now() + minute),
      });
      const { $typeName, version, ...values } = created;
      const replace = (changes: object) =>
        api().updateApplication(root.key, { ...values, ...changes });
      server().clock.advance(1);
      expect(await replace({ ifMatch: version })).toEqual(created);
      const differences = [
        { permissions: ["token:create", "token:read"] },
        { rules: [...rules].reverse() },
        { metadata: { team: "payments" } },
        { description: "" },
      ];
      const versions = new Set([version]);
      for (const difference of differences) {
        const updated = await replace(difference);
        expect(updated).toMatchObject({ modifiedBy: root.applicationId });
        expect(await replace(difference)).toEqual(updated);
        versions.add(updated.version);
      }
      expect(versions.size).toBe(1 + differences.length);
      const stale = replace({ ...differences.at(-1), ifMatch: version });
      await expectRefused(stale, "version_mismatch");
      const { data } = await api().listEvents(root.key, { target: created.id });
      expect(data.map(({ kind }) => kind)).toEqual([
        ...differences.map(() => "application.updated"),
        "application.created",
      ]);
    });

    it.each<[name: string, field: string, change: object]>([
      ["no name", "name", { name: "" }],
      ["a name of 201 characters", "name", { name: "x".repeat(201) }],
      ["neither permissions nor rules", "request", { permissions: [] }],
      ["a rule without container", "rules[0].container", { rules: [without("container")] }],
      [
        "a permission that a public one cannot hold",
        "permissions[0]",
        { permissions: ["application:delete"] },
      ],
    ])("is refused with %s, and changes nothing", async (_case, field, change) => {
      const { root, publicApp } = await createTenant();
      const request = { id: publicApp.id, name: "renamed", ...tokenRead, ...change };
      const { errors } = await expectRefused(
        api().updateApplication(root.key, request),
        "invalid_request",
      );
      expect(Object.keys(errors)).toContain(field);
      expect(await api().getApplication(root.key, publicApp)).toMatchObject({
        name: publicApp.name,
        permissions: publicApp.permissions,
      });
    });

    it("cannot grant a permission of this service that the caller lacks", async () => {
      const { root, createApplication } = await createTenant();
      const updater = await createApplication("management", ["application:update"]);
      const target = await createApplication("private");
      const permissions = ["application:delete"];
      const request = { id: target.id, name: "a", permissions };
      await expectRefused(api().updateApplication(updater.key, request), "permission_denied");
      expect((await api().getApplication(root.key, target)).permissions).toEqual(
        target.permissions,
      );
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicApp, root } = await createTenant();
      const other = await server().createTenant();
      const request = { id: publicApp.id, name: "mine now", ...tokenRead };
      await expectRefused(api().updateApplication(other.key, request), "application_not_found");
      expect((await api().getApplication(root.key, publicApp)).name).toBe(publicApp.name);
    });

    it("needs application:update", async () => {
      const { privateKey, publicApp } = await createTenant();
      const request = { id: publicApp.id, name: "a", ...tokenRead };
      await expectRefused(api().updateApplication(privateKey, request), "permission_denied");
    });
  });

  describe("updating an application with an update mask", () => {
    const mask = (...paths: string[]) => create(FieldMaskSchema, { paths });
    const fields = { description: "a", metadata: { team: "payments", tier: "gold" } };

    async function createLabelled() {
      const { root } = await createTenant();
      const request = { name: "one", type: "private", ...tokenRead, rules: [containerRule] };
      const { key: _, ...before } = await api().createApplication(root.key, {
        ...request,
        ...fields,
      });
      const update = (changes: object) =>
        api().updateApplication(root.key, { id: before.id, ...changes });
      return { root, before, update };
    }

    it("changes the fields that it names, and ignores all others", async () => {
      const { before, update } = await createLabelled();
      const changes = { name: "renamed", description: "b", permissions: [], metadata: {} };
      const updated = await update({ ...changes, updateMask: mask("description") });
      expect(updated).toMatchObject({
        name: before.name,
        description: "b",
        permissions: before.permissions,
        rules: before.rules,
        metadata: before.metadata,
      });
    });

    it("requires only what it names", async () => {
      const { before, update } = await createLabelled();
      const { rules } = await update({ updateMask: mask("rules") });
      expect(rules).toEqual([]);
      const call = update({ updateMask: mask("permissions") });
      const { facts } = await expectRefused(call, "invalid_request");
      expect(facts.violations).toEqual([
        {
          field: "request",
          code: "update_application.grants",
          message: expect.stringContaining("permissions and rules are both empty"),
        },
      ]);
      const unnamed = await expectRefused(update({ updateMask: mask("name") }), "invalid_request");
      expect(unnamed.errors).toEqual({ name: ["is required"] });
      expect(before.rules).toHaveLength(1);
    });

    it("replaces or clears every field if it is *", async () => {
      const { update } = await createLabelled();
      const updated = await update({ name: "renamed", ...tokenRead, updateMask: mask("*") });
      expect(updated).toMatchObject({ name: "renamed", ...tokenRead, rules: [], metadata: {} });
      expect(updated.description).toBeUndefined();
    });

    it("sets and removes single keys of the metadata", async () => {
      const { update } = await createLabelled();
      const updateMask = mask("metadata.tier", "metadata.a.b", "metadata.unknown");
      const metadata = { "a.b": "c", team: "ignored" };
      const updated = await update({ metadata, updateMask });
      expect(updated.metadata).toEqual({ team: "payments", "a.b": "c" });
    });

    it("changes nothing and records no event if it is empty", async () => {
      const { root, before, update } = await createLabelled();
      server().clock.advance(1);
      expect(await update({ name: "renamed", updateMask: mask() })).toEqual(before);
      expect(await api().getApplication(root.key, before)).toEqual(before);
      const { data } = await api().listEvents(root.key, { target: before.id });
      expect(data.map(({ kind }) => kind)).toEqual(["application.created"]);
    });

    it("may name what only the service sets, which is not changed and must be equal if sent", async () => {
      const { before, update } = await createLabelled();
      server().clock.advance(1);
      const paths = ["id", "version", "modified_at", "last_used_at", "tenant_id"];
      expect(await update({ updateMask: mask(...paths) })).toEqual(before);
      const changes = { ...fields, description: "b", modifiedBy: "ignored" };
      const updated = await update({ ...changes, updateMask: mask(...paths, "description") });
      expect(updated).toMatchObject({ description: "b", tenantId: before.tenantId });
      const call = update({ tenantId: before.id, updateMask: mask("tenant_id") });
      const { facts } = await expectRefused(call, "invalid_request");
      expect(facts.violations).toMatchObject([{ field: "tenant_id", code: "output_only" }]);
    });

    it("needs the permissions of every update, also if it is empty", async () => {
      const fixtures = await createTenant();
      const updater = await fixtures.createApplication("management", ["application:update"]);
      const target = await fixtures.createApplication("management", ["application:delete"]);
      for (const updateMask of [mask(), mask("description")]) {
        const request = { id: target.id, description: "b", updateMask };
        await expectRefused(api().updateApplication(updater.key, request), "permission_denied");
        const reader = api().updateApplication(fixtures.privateKey, request);
        await expectRefused(reader, "permission_denied");
      }
    });

    it("checks new grants as every update does", async () => {
      const { createApplication } = await createTenant();
      const updater = await createApplication("management", ["application:update"]);
      const target = await createApplication("private", ["token:read"]);
      const request = { id: target.id, permissions: ["application:delete"] };
      const call = api().updateApplication(updater.key, {
        ...request,
        updateMask: mask("permissions"),
      });
      await expectRefused(call, "permission_denied");
    });
  });

  describe("regenerating a key", () => {
    it("returns a new key and revokes the old one at once", async () => {
      const { root, publicApp, publicKey } = await createTenant();
      const { key, ...rest } = await api().regenerateApplicationKey(root.key, publicApp);
      expect(rest).toMatchObject({ id: publicApp.id, modifiedBy: root.applicationId });
      expect(key).not.toBe(publicKey);
      await expectRefused(api().getApplicationByKey(publicKey), "unauthenticated");
      expect(await api().getApplicationByKey(key)).toEqual(rest);
    });

    it("does not affect sessions", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      await api().regenerateApplicationKey(tenant.root.key, tenant.publicApp);
      await expect(api().getApplicationByKey(session.key)).resolves.toBeDefined();
    });

    it("works for the caller's own key", async () => {
      const root = await server().createTenant();
      const { key } = await api().regenerateApplicationKey(root.key, { id: root.applicationId });
      await expectRefused(api().getApplicationByKey(root.key), "unauthenticated");
      await expect(api().getApplicationByKey(key)).resolves.toBeDefined();
    });

    it("is refused if the application has permissions that the caller lacks", async () => {
      const { root, createApplication } = await createTenant();
      const updater = await createApplication("management", ["application:update"]);
      const call = api().regenerateApplicationKey(updater.key, { id: root.applicationId });
      expect((await expectRefused(call, "permission_denied")).message).toContain(
        "application:create",
      );
      await expect(api().getApplicationByKey(root.key)).resolves.toBeDefined();
    });

    it("leaves one valid key after concurrent calls", async () => {
      const { root, publicApp } = await createTenant();
      const created = await Promise.all(
        Array.from({ length: 5 }, () => api().regenerateApplicationKey(root.key, publicApp)),
      );
      const results = await Promise.allSettled(
        created.map(({ key }) => api().getApplicationByKey(key)),
      );
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicApp, publicKey } = await createTenant();
      const other = await server().createTenant();
      await expectRefused(
        api().regenerateApplicationKey(other.key, publicApp),
        "application_not_found",
      );
      await expect(api().getApplicationByKey(publicKey)).resolves.toBeDefined();
    });

    it("needs application:update", async () => {
      const { privateKey, publicApp } = await createTenant();
      await expectRefused(
        api().regenerateApplicationKey(privateKey, publicApp),
        "permission_denied",
      );
    });
  });

  describe("deleting an application", () => {
    it("revokes its key at once and removes the application", async () => {
      const { root, publicApp, publicKey } = await createTenant();
      await api().deleteApplication(root.key, publicApp);
      await expectRefused(api().getApplicationByKey(publicKey), "unauthenticated");
      await expectRefused(api().getApplication(root.key, publicApp), "application_not_found");
      await expectRefused(api().deleteApplication(root.key, publicApp), "application_not_found");
    });

    it("revokes its sessions and their nonces at once", async () => {
      const tenant = await createTenant();
      const [pending, authorized] = [await openSession(tenant), await openSession(tenant)];
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: authorized.nonce, permissions });
      await api().deleteApplication(tenant.root.key, tenant.publicApp);
      await expectRefused(api().getApplicationByKey(authorized.key), "unauthenticated");
      const call = api().authorizeSession(tenant.privateKey, { nonce: pending.nonce, permissions });
      await expectRefused(call, "nonce_not_found");
    });

    it("returns 404 for another tenant's application", async () => {
      const { publicApp, publicKey } = await createTenant();
      const other = await server().createTenant();
      await expectRefused(api().deleteApplication(other.key, publicApp), "application_not_found");
      await expect(api().getApplicationByKey(publicKey)).resolves.toBeDefined();
    });

    it("needs application:delete", async () => {
      const { privateKey, publicApp } = await createTenant();
      await expectRefused(api().deleteApplication(privateKey, publicApp), "permission_denied");
    });
  });

  describe("an application that expires", () => {
    it("is valid until the millisecond of its expiry", async () => {
      const { root } = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const permissions = ["application:read"];
      const request = { name: "expiring", type: "private", permissions, expiresAt };
      const created = await api().createApplication(root.key, request);
      server().clock.advance(minute - 1);
      await expect(api().getApplicationByKey(created.key)).resolves.toBeDefined();
      server().clock.advance(1);
      await expectRefused(api().getApplicationByKey(created.key), "unauthenticated");
      await expectRefused(api().getApplication(root.key, created), "application_not_found");
    });

    it("expires with its sessions", async () => {
      const { root, privateKey } = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + 1_000);
      const request = { name: "expiring", type: "public", ...tokenRead, expiresAt };
      const created = await api().createApplication(root.key, request);
      const session = await api().createSession(created.key);
      const permissions = ["application:read"];
      await api().authorizeSession(privateKey, { nonce: session.nonce, permissions });
      await expect(api().getApplicationByKey(session.sessionKey)).resolves.toBeDefined();
      server().clock.advance(1_000);
      await expectRefused(api().getApplicationByKey(session.sessionKey), "unauthenticated");
    });
  });
}
