import { create } from "@bufbuild/protobuf";
import { durationFromMs, FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ownPermissions } from "../../../src/contract/methods.js";
import { type Api, keyOf } from "../../support/api/api.js";
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

const clearing = (...paths: string[]) => create(FieldMaskSchema, { paths });

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
    const never = clearing("expires_at");

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
      const removed = { ...tokenRead, updateMask: { paths: ["expires_at", "permissions"] } };
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

    it("grants a permission that it holds directly with the transform mask, after its own rules", async () => {
      const { create } = await createGrantor(tokenRead);
      await create({ ...tokenRead, rules: [rule, { ...rule, transform: "redact" }] });
      const reveal = create({ rules: [{ ...rule, transform: "reveal" }] });
      const { message } = await expectRefused(reveal, "permission_denied");
      expect(message).toContain('rules[0].permissions[0] (token:read: reveal in "/pci/"');

      const redacted = { ...rule, transform: "redact" };
      const stricter = await createGrantor({ ...tokenRead, rules: [redacted] });
      await expectRefused(stricter.create(tokenRead), "permission_denied");
      await expectRefused(stricter.create({ rules: [rule] }), "permission_denied");
      await stricter.create({ ...tokenRead, rules: [redacted] });
      const { id, key } = stricter;
      const permissions = [...managing, "token:read"];
      const without = api().updateApplication(key, { id, name: "itself", permissions });
      await expectRefused(without, "permission_denied");
      await api().updateApplication(key, { id, name: "itself", permissions, rules: [redacted] });
    });

    it("creates a key that decides no more than its own, in a check", async () => {
      const { root, key, create } = await createGrantor({ ...tokenRead, rules: [rule] });
      const created = await create({ ...tokenRead, rules: [rule] });
      for (const container of ["/pci/high/", "/logs/", undefined]) {
        const check = { permission: "token:read", token: { id: "card-1", container } };
        const [own, other] = await Promise.all(
          [key, keyOf(created)].map((key) => api().checkAccess(root.key, { key, ...check })),
        );
        expect(other?.transform).toBe(own?.transform);
      }
    });

    describe("that expires or is restricted to networks", () => {
      const local = ["127.0.0.0/8", "::1"];

      it("grants other services' permissions only to applications that expire no later", async () => {
        const expiresAt = timestampFromMs(server().clock.now() + hour);
        const { create, createApplication, key } = await createGrantor({ ...tokenRead, expiresAt });
        const { message } = await expectRefused(create(tokenRead), "permission_denied");
        expect(message).toContain("token:read");
        expect(message).toContain("expires_at");
        await create({ ...tokenRead, expiresAt });

        const { id } = await createApplication("private", { permissions: ["token:use"] });
        const update = (permissions: string[]) =>
          api().updateApplication(key, { id, name: "renamed", permissions });
        await update(["token:use"]);
        await expectRefused(update(["token:use", "token:read"]), "permission_denied");
        await expectRefused(api().regenerateApplicationKey(key, { id }), "permission_denied");
      });

      it("grants only to applications that are restricted to the same networks", async () => {
        const { create, id, key } = await createGrantor({ ...tokenRead, allowedCidrs: local });
        for (const allowedCidrs of [[], ["0.0.0.0/0"], [...local, "192.0.2.1"]]) {
          const call = create({ ...tokenRead, allowedCidrs });
          const { message } = await expectRefused(call, "permission_denied");
          expect(message).toContain("127.0.0.0/8, ::1");
        }
        await create({ ...tokenRead, allowedCidrs: ["127.0.0.0/9", "127.128.0.0/9"] });
        const update = { id, name: "itself", permissions: [...managing, "token:read"] };
        const updateMask = clearing("allowed_cidrs");
        const call = api().updateApplication(key, { ...update, updateMask });
        await expectRefused(call, "permission_denied");
        await api().updateApplication(key, { ...update, allowedCidrs: ["127.0.0.1"] });
      });
    });

    describe.each<[name: string, type: string, target: GrantsInit, widening: object]>([
      [
        "clearing allowed_cidrs",
        "private",
        { allowedCidrs: ["192.0.2.0/24"] },
        { updateMask: clearing("allowed_cidrs") },
      ],
      [
        "adding a network",
        "private",
        { allowedCidrs: ["192.0.2.0/24"] },
        { allowedCidrs: ["192.0.2.0/24", "192.0.3.0/24"] },
      ],
      [
        "clearing allowed_origins",
        "public",
        { allowedOrigins: ["https://a.shop.example"] },
        { updateMask: clearing("allowed_origins") },
      ],
      [
        "adding an origin",
        "public",
        { allowedOrigins: ["https://a.shop.example"] },
        { allowedOrigins: ["https://*.shop.example"] },
      ],
    ])("%s of an application", (_, type, restricted, widening) => {
      it("needs coverage of all grants of the application", async () => {
        const { root, key, createApplication } = await createGrantor(tokenRead);
        const covered = await createApplication(type, { ...tokenRead, ...restricted });
        const grants = { permissions: ["token:delete"] };
        const { id } = await createApplication(type, { ...grants, ...restricted });
        const update = { id, name: "renamed", ...grants };
        await api().updateApplication(key, update);
        const call = api().updateApplication(key, { ...update, ...widening });
        expect((await expectRefused(call, "permission_denied")).message).toContain("token:delete");
        await api().updateApplication(key, {
          ...update,
          ...tokenRead,
          ...widening,
          id: covered.id,
        });
        await api().updateApplication(root.key, { ...update, ...widening });
      });
    });

    it("enables only applications whose grants its own cover", async () => {
      const { root, key, createApplication } = await createGrantor(tokenRead);
      for (const [permission, isCovered] of [
        ["token:read", true],
        ["token:delete", false],
      ] as const) {
        const { id } = await createApplication("private", { permissions: [permission] });
        await api().enableApplication(key, { id });
        await api().disableApplication(key, { id });
        const enabling = api().enableApplication(key, { id });
        if (isCovered) {
          await enabling;
        } else {
          const { message } = await expectRefused(enabling, "permission_denied");
          expect(message).toContain("token:delete");
          await api().enableApplication(root.key, { id });
        }
      }
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
