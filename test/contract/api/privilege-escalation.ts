import { create } from "@bufbuild/protobuf";
import { durationFromMs, FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ownPermissions } from "../../../src/contract/methods.js";
import type { Api } from "../../support/api/api.js";
import {
  type ApiSubject,
  type CreatedApplication,
  containerRule,
  type GrantsInit,
  seedTenant,
  tokenRead,
} from "./fixtures.js";

const hour = 3_600_000;
const own = ownPermissions.map(({ name }) => name);
const managing = ["application:create", "application:update"];

interface Target extends CreatedApplication {
  /** An earlier key that is still valid. */
  readonly keyId: string;
  readonly sessionId: string;
}

/** Every operation on an existing application. */
const operations: Readonly<
  Record<string, (api: Api, key: string, target: Target) => Promise<unknown>>
> = {
  "updating an application": (api, key, { id }) =>
    api.updateApplication(key, { id, name: "weak", ...tokenRead }),
  "disabling an application": (api, key, { id }) => api.disableApplication(key, { id }),
  "enabling an application": (api, key, { id }) => api.enableApplication(key, { id }),
  "deleting an application": (api, key, { id }) => api.deleteApplication(key, { id }),
  "regenerating a key": (api, key, { id }) => api.regenerateApplicationKey(key, { id }),
  "revoking a key": (api, key, { id, keyId }) => api.deleteApplicationKey(key, { id, keyId }),
  "revoking all sessions": (api, key, { id }) => api.revokeAllSessions(key, { id }),
  "deleting a session": (api, key, { sessionId }) => api.deleteSession(key, { id: sessionId }),
};

/** A caller cannot grant more than it has, nor administer an application with more permissions. */
export function describePrivilegeEscalation({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  describe.each(Object.entries(operations))("%s", (action, administer) => {
    async function prepare() {
      const tenant = await createTenant();
      const { root, createApplication } = tenant;
      const { id } = await createApplication("public", {
        permissions: ["application:read", "token:read"],
      });
      const grace = { id, gracePeriod: durationFromMs(hour) };
      const { key = "" } = await api().regenerateApplicationKey(root.key, grace);
      const { data } = await api().listApplicationKeys(root.key, { id });
      const { id: sessionId } = await api().createSession(key);
      const readState = async () => [
        await api().getApplication(root.key, { id }),
        (await api().listApplicationKeys(root.key, { id })).data,
        await api().getSession(root.key, { id: sessionId }),
      ];
      return { ...tenant, readState, target: { id, key, keyId: data[1]?.id ?? "", sessionId } };
    }

    it("needs all permissions of this service that the application holds", async () => {
      const { createApplication, readState, target } = await prepare();
      const permissions = own.filter((name) => name !== "application:read");
      const caller = await createApplication("management", { permissions });
      const before = await readState();
      const call = administer(api(), caller.key, target);
      const { message } = await expectRefused(call, "permission_denied");
      expect(message).toContain("application:read");
      expect(message).not.toContain("token:read");
      expect(await readState()).toEqual(before);
    });

    it("needs no permission of other services", async () => {
      const { createApplication, target } = await prepare();
      // The caller receives the new key, and with it all grants of the application.
      const needed = action === "regenerating a key" ? ["token:read"] : [];
      const caller = await createApplication("private", { permissions: [...own, ...needed] });
      await administer(api(), caller.key, target);
    });
  });

  describe("an application that updates itself", () => {
    it.each([["application:delete"], ["token:read"]])(
      "cannot grant %s to itself if it is private",
      async (given) => {
        const { createApplication } = await createTenant();
        const permissions = ["application:update"];
        const { id, key } = await createApplication("private", { permissions });
        const update = { id, name: "elevated", permissions: [...permissions, given] };
        const { message } = await expectRefused(
          api().updateApplication(key, update),
          "permission_denied",
        );
        expect(message).toContain(given);
        await api().updateApplication(key, { ...update, permissions });
      },
    );
  });

  describe("a caller that expires", () => {
    async function createExpiring() {
      const tenant = await createTenant();
      const expiry = server().clock.now() + hour;
      const permissions = [...managing, "application:read"];
      const caller = await tenant.createApplication("management", {
        permissions,
        expiresAt: timestampFromMs(expiry),
      });
      const create = (grants: GrantsInit) =>
        api().createApplication(caller.key, { name: "created", type: "private", ...grants });
      return { ...tenant, expiry, caller, create };
    }

    it("grants permissions of this service only to applications that expire no later", async () => {
      const { expiry, create } = await createExpiring();
      const permissions = ["application:read"];
      for (const expiresAt of [undefined, timestampFromMs(expiry + 1)]) {
        const call = create({ permissions, ...(expiresAt && { expiresAt }) });
        const { message } = await expectRefused(call, "permission_denied");
        expect(message).toContain("application:read");
        expect(message).toContain(new Date(expiry).toISOString());
      }
      await create({ permissions, expiresAt: timestampFromMs(expiry) });
      await create(tokenRead);
    });

    it("cannot regenerate a key with this service's permissions that expires later than its own", async () => {
      const { expiry, createApplication, caller } = await createExpiring();
      const permissions = ["application:read"];
      const permanent = await createApplication("private", { permissions });
      const call = api().regenerateApplicationKey(caller.key, { id: permanent.id });
      expect((await expectRefused(call, "permission_denied")).message).toContain(
        "application:read",
      );
      const expiring = await createApplication("private", {
        permissions,
        expiresAt: timestampFromMs(expiry),
      });
      await api().regenerateApplicationKey(caller.key, { id: expiring.id });
      await api().regenerateApplicationKey(caller.key, { id: caller.id });
    });

    it("grants none in an update of an application that expires later, and keeps its grants", async () => {
      const { expiry, createApplication, caller } = await createExpiring();
      const { id } = await createApplication("private", { permissions: ["application:create"] });
      const update = (permissions: string[]) =>
        api().updateApplication(caller.key, { id, name: "renamed", permissions });
      const call = update(["application:create", "application:read"]);
      const { message } = await expectRefused(call, "permission_denied");
      expect(message).toContain(new Date(expiry).toISOString());
      expect(message).not.toContain("application:create");
      await update(["application:create"]);
    });
  });

  describe("an update of the expiry", () => {
    const never = create(FieldMaskSchema, { paths: ["expires_at"] });

    it("cannot let permissions of this service outlast the caller", async () => {
      const tenant = await createTenant();
      const { now } = server().clock;
      const permissions = [...managing, "application:read"];
      const expiry = now() + hour;
      const createUntil = (expiresAt: number, permissions: string[]) =>
        tenant.createApplication("management", {
          permissions,
          expiresAt: timestampFromMs(expiresAt),
        });
      const caller = await createUntil(expiry, permissions);
      const target = await createUntil(now() + hour / 2, ["application:read"]);
      const longer = await createUntil(now() + 2 * hour, ["application:read"]);
      const update = (id: string, change: object) =>
        api().updateApplication(caller.key, {
          id,
          name: "renamed",
          permissions: ["application:read"],
          ...change,
        });
      for (const { id } of [target, caller]) {
        const kept = id === caller.id ? { permissions } : {};
        for (const change of [{ expiresAt: timestampFromMs(expiry + 1) }, { updateMask: never }]) {
          const call = update(id, { ...kept, ...change });
          const { message } = await expectRefused(call, "permission_denied");
          expect(message).toContain(new Date(expiry).toISOString());
        }
      }
      await update(target.id, { expiresAt: timestampFromMs(expiry) });
      await update(longer.id, {});
      await update(longer.id, { expiresAt: timestampFromMs(expiry + 1) });
      const removed = { ...tokenRead, updateMask: never };
      expect((await update(target.id, removed)).expiresAt).toBeUndefined();
    });

    it("cannot prolong grants that the caller does not cover", async () => {
      const { createApplication } = await createTenant();
      const { now } = server().clock;
      const caller = await createApplication("private", { permissions: managing });
      const expiresAt = timestampFromMs(now() + hour);
      const { id } = await createApplication("private", { ...tokenRead, expiresAt });
      const update = (after: number) =>
        api().updateApplication(caller.key, {
          id,
          name: "renamed",
          ...tokenRead,
          expiresAt: timestampFromMs(now() + after),
        });
      await expectRefused(update(2 * hour), "permission_denied");
      await update(hour / 2);
    });

    it("may let the last manager of the tenant expire, as its creation may", async () => {
      const { root } = await createTenant();
      const { id, name, permissions } = await api().getApplication(root.key, {
        id: root.applicationId,
      });
      const expiresAt = timestampFromMs(server().clock.now() + hour);
      const update = { id, name, permissions, expiresAt };
      expect(await api().updateApplication(root.key, update)).toMatchObject({ expiresAt });
    });
  });

  describe("a private application", () => {
    const rule = containerRule;

    async function createGrantor(grants: GrantsInit) {
      const tenant = await createTenant();
      const permissions = [...new Set([...managing, ...(grants.permissions ?? [])])];
      const { id, key } = await tenant.createApplication("private", { ...grants, permissions });
      const create = (given: GrantsInit) =>
        api().createApplication(key, { name: "created", type: "private", ...given });
      return { ...tenant, id, key, create };
    }

    it.each<[name: string, given: GrantsInit]>([
      ["the same rule", { rules: [rule] }],
      ["a container inside its own", { rules: [{ ...rule, container: "pci/high" }] }],
      ["a transform that reveals less", { rules: [{ ...rule, transform: "redact" }] }],
    ])("grants %s", async (_, given) => {
      const { create } = await createGrantor({ rules: [rule] });
      await expect(create(given)).resolves.toBeDefined();
    });

    it.each<[name: string, field: string, given: GrantsInit]>([
      ["the permission directly", "permissions[0]", tokenRead],
      ["another permission", "permissions[0]", { permissions: ["token:use"] }],
      [
        "a permission that it lacks, in a rule",
        "rules[1].permissions[1]",
        { rules: [rule, { ...rule, permissions: ["token:read", "token:use"] }] },
      ],
      [
        "a container that contains its own",
        "rules[0].permissions[0]",
        { rules: [{ ...rule, container: "/" }] },
      ],
      [
        "a container beside its own",
        "rules[0].permissions[0]",
        { rules: [{ ...rule, container: "/pcix/" }] },
      ],
      [
        "a transform that reveals more",
        "rules[0].permissions[0]",
        { rules: [{ ...rule, transform: "reveal" }] },
      ],
    ])("does not grant %s", async (_, field, given) => {
      const { create } = await createGrantor({ rules: [rule] });
      const { message } = await expectRefused(create(given), "permission_denied");
      expect(message).toContain(field);
    });

    it("grants no more than its first rule allows", async () => {
      const redacted = { ...rule, transform: "redact" };
      const { create } = await createGrantor({
        rules: [redacted, { ...rule, container: "/", priority: 2 }],
      });
      await create({ rules: [{ ...rule, container: "/other/" }] });
      await expectRefused(create({ rules: [rule] }), "permission_denied");
      await expectRefused(create({ rules: [{ ...rule, container: "/" }] }), "permission_denied");
    });

    it("grants any rule of a permission that it holds directly", async () => {
      const { create } = await createGrantor(tokenRead);
      await create({ ...tokenRead, rules: [{ ...rule, transform: "reveal" }] });
    });

    it("cannot create a management application that can create or update others, nor regenerate its key", async () => {
      const { root, create, key, createApplication } = await createGrantor({ permissions: own });
      const request = { name: "free", type: "management", permissions: ["application:create"] };
      const { message } = await expectRefused(
        api().createApplication(key, request),
        "permission_denied",
      );
      expect(message).toContain("application:create");
      const { id } = await createApplication("management", { permissions: ["application:read"] });
      const update = { id, name: "free", permissions: ["application:read", "application:update"] };
      await expectRefused(api().updateApplication(key, update), "permission_denied");
      const takeover = api().regenerateApplicationKey(key, { id: root.applicationId });
      await expectRefused(takeover, "permission_denied");
      await create({ permissions: ["application:create"] });
      await api().regenerateApplicationKey(key, { id });
    });

    it("cannot regenerate a key whose grants its own do not cover, except its own key", async () => {
      const {
        key,
        createApplication,
        id: ownId,
      } = await createGrantor({
        permissions: ["application:update"],
        rules: [rule],
      });
      const wider = { ...rule, transform: "reveal" };
      for (const grants of [{ rules: [wider] }, { permissions: ["token:delete"] }]) {
        const { id } = await createApplication("private", grants);
        const call = api().regenerateApplicationKey(key, { id });
        expect((await expectRefused(call, "permission_denied")).message).toContain("token:");
      }
      const { id } = await createApplication("private", { rules: [rule] });
      await api().regenerateApplicationKey(key, { id });
      await api().regenerateApplicationKey(key, { id: ownId });
    });

    it("keeps the grants of an application, and widens none", async () => {
      const { key, createApplication } = await createGrantor({ rules: [rule] });
      const first = { ...rule, transform: "redact" };
      const second = { ...rule, container: "/", transform: "reveal", priority: 2 };
      const { id } = await createApplication("private", { rules: [first, second] });
      const update = (rules: (typeof rule)[]) =>
        api().updateApplication(key, { id, name: "renamed", rules });
      await update([first, second]);
      await update([{ ...rule, container: "/pci/high/" }, { ...first, priority: 2 }, second]);
      const { message } = await expectRefused(update([second]), "permission_denied");
      expect(message).toContain("rules[0].permissions[0]");
      await update([first]);
    });
  });

  describe("a management application", () => {
    it("grants permissions of other services freely", async () => {
      const { createApplication } = await createTenant();
      const { key } = await createApplication("management", { permissions: managing });
      const given = { name: "created", type: "private", ...tokenRead };
      await expect(api().createApplication(key, given)).resolves.toBeDefined();
    });
  });

  describe("the last application that can create and update applications", () => {
    it.each<[name: string, change: (key: string, id: string) => Promise<unknown>]>([
      ["be disabled", (key, id) => api().disableApplication(key, { id })],
      ["be deleted", (key, id) => api().deleteApplication(key, { id })],
      [
        "lose one of the two permissions",
        (key, id) =>
          api().updateApplication(key, { id, name: "weak", permissions: ["application:update"] }),
      ],
    ])("cannot %s until another one exists", async (_, change) => {
      const { root, createApplication } = await createTenant();
      const id = root.applicationId;
      const before = await api().getApplication(root.key, { id });
      await expectRefused(change(root.key, id), "last_manager");
      expect(await api().getApplication(root.key, { id })).toEqual(before);
      await createApplication("management", { permissions: managing });
      await change(root.key, id);
    });

    it("stays enabled when two disable each other at once", async () => {
      const { root, createApplication } = await createTenant();
      const other = await createApplication("management", { permissions: own });
      const results = await Promise.allSettled([
        api().disableApplication(root.key, other),
        api().disableApplication(other.key, { id: root.applicationId }),
      ]);
      expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    });
  });
}
