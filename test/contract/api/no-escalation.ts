import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ownPermissions } from "../../../src/contract/methods.js";
import type { Api } from "../../support/api/api.js";
import { containerRule, tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";
import { createTenant, type GrantsInit, type MadeApplication } from "./tenant.js";

const hour = 3_600_000;
const own = ownPermissions.map(({ name }) => name);
const managing = ["application:create", "application:update"];

interface Target extends MadeApplication {
  /** An earlier key of it that still works. */
  readonly keyId: string;
  readonly sessionId: string;
}

/** All that is done to an application that exists. */
const administering: Readonly<
  Record<string, (api: Api, key: string, target: Target) => Promise<unknown>>
> = {
  "update it": (api, key, { id }) => api.updateApplication(key, { id, name: "weak", ...tokenRead }),
  "disable it": (api, key, { id }) => api.disableApplication(key, { id }),
  "enable it": (api, key, { id }) => api.enableApplication(key, { id }),
  "delete it": (api, key, { id }) => api.deleteApplication(key, { id }),
  "regenerate its key": (api, key, { id }) => api.regenerateApplicationKey(key, { id }),
  "revoke one of its keys": (api, key, { id, keyId }) =>
    api.deleteApplicationKey(key, { id, keyId }),
  "revoke its sessions": (api, key, { id }) => api.revokeAllSessions(key, { id }),
  "delete one of its sessions": (api, key, { sessionId }) =>
    api.deleteSession(key, { id: sessionId }),
};

/** Nobody gives more than it has, or administers what is stronger than itself. */
export function describeNoEscalation({ server, api, refused }: ApiSubject): void {
  const newTenant = () => createTenant(server(), api());

  describe.each(Object.entries(administering))("to %s", (action, administer) => {
    async function prepared() {
      const tenant = await newTenant();
      const { root, make } = tenant;
      const { id } = await make("public", { permissions: ["application:read", "token:read"] });
      const grace = { id, gracePeriod: durationFromMs(hour) };
      const { key = "" } = await api().regenerateApplicationKey(root.key, grace);
      const { data } = await api().listApplicationKeys(root.key, { id });
      const { id: sessionId } = await api().createSession(key);
      const look = async () => [
        await api().getApplication(root.key, { id }),
        (await api().listApplicationKeys(root.key, { id })).data,
        await api().getSession(root.key, { id: sessionId }),
      ];
      return { ...tenant, look, target: { id, key, keyId: data[1]?.id ?? "", sessionId } };
    }

    it("needs all permissions of this service that the application holds", async () => {
      const { make, look, target } = await prepared();
      const permissions = own.filter((name) => name !== "application:read");
      const caller = await make("management", { permissions });
      const before = await look();
      const call = administer(api(), caller.key, target);
      const { message } = await refused(call, "permission_denied");
      expect(message).toContain("application:read");
      expect(message).not.toContain("token:read");
      expect(await look()).toEqual(before);
    });

    it("needs no permission of other services", async () => {
      const { make, target } = await prepared();
      // A new key gives whoever sees it all that the application holds.
      const seen = action === "regenerate its key" ? ["token:read"] : [];
      const caller = await make("private", { permissions: [...own, ...seen] });
      await administer(api(), caller.key, target);
    });
  });

  describe("updating one's own application", () => {
    it.each([["application:delete"], ["token:read"]])(
      "cannot grant %s to a private one",
      async (given) => {
        const { make } = await newTenant();
        const permissions = ["application:update"];
        const { id, key } = await make("private", { permissions });
        const update = { id, name: "stronger", permissions: [...permissions, given] };
        const { message } = await refused(
          api().updateApplication(key, update),
          "permission_denied",
        );
        expect(message).toContain(given);
        await api().updateApplication(key, { ...update, permissions });
      },
    );
  });

  describe("a caller that expires", () => {
    async function expiring() {
      const tenant = await newTenant();
      const end = server().clock.now() + hour;
      const permissions = [...managing, "application:read"];
      const caller = await tenant.make("management", {
        permissions,
        expiresAt: timestampFromMs(end),
      });
      const create = (grants: GrantsInit) =>
        api().createApplication(caller.key, { name: "made", type: "private", ...grants });
      return { ...tenant, end, caller, create };
    }

    it("grants permissions of this service only to what expires no later", async () => {
      const { end, create } = await expiring();
      const permissions = ["application:read"];
      for (const expiresAt of [undefined, timestampFromMs(end + 1)]) {
        const call = create({ permissions, ...(expiresAt && { expiresAt }) });
        const { message } = await refused(call, "permission_denied");
        expect(message).toContain("application:read");
        expect(message).toContain(new Date(end).toISOString());
      }
      await create({ permissions, expiresAt: timestampFromMs(end) });
      await create(tokenRead);
    });

    it("cannot regenerate a key with this service's permissions that expires later than its own", async () => {
      const { end, make, caller } = await expiring();
      const permissions = ["application:read"];
      const lasting = await make("private", { permissions });
      const call = api().regenerateApplicationKey(caller.key, { id: lasting.id });
      expect((await refused(call, "permission_denied")).message).toContain("application:read");
      const brief = await make("private", { permissions, expiresAt: timestampFromMs(end) });
      await api().regenerateApplicationKey(caller.key, { id: brief.id });
      await api().regenerateApplicationKey(caller.key, { id: caller.id });
    });

    it("grants none in an update to what expires later, and keeps what it has", async () => {
      const { end, make, caller } = await expiring();
      const { id } = await make("private", { permissions: ["application:create"] });
      const update = (permissions: string[]) =>
        api().updateApplication(caller.key, { id, name: "renamed", permissions });
      const call = update(["application:create", "application:read"]);
      const { message } = await refused(call, "permission_denied");
      expect(message).toContain(new Date(end).toISOString());
      expect(message).not.toContain("application:create");
      await update(["application:create"]);
    });
  });

  describe("a private application", () => {
    const rule = containerRule;

    async function giver(grants: GrantsInit) {
      const tenant = await newTenant();
      const permissions = [...new Set([...managing, ...(grants.permissions ?? [])])];
      const { id, key } = await tenant.make("private", { ...grants, permissions });
      const create = (given: GrantsInit) =>
        api().createApplication(key, { name: "made", type: "private", ...given });
      return { ...tenant, id, key, create };
    }

    it.each<[what: string, given: GrantsInit]>([
      ["the same rule", { rules: [rule] }],
      ["a container inside its own", { rules: [{ ...rule, container: "pci/high" }] }],
      ["a transform that reveals less", { rules: [{ ...rule, transform: "redact" }] }],
    ])("gives %s", async (_, given) => {
      const { create } = await giver({ rules: [rule] });
      await expect(create(given)).resolves.toBeDefined();
    });

    it.each<[what: string, field: string, given: GrantsInit]>([
      ["the permission directly", "permissions[0]", tokenRead],
      ["another permission", "permissions[0]", { permissions: ["token:use"] }],
      [
        "a permission that it lacks, in a rule",
        "rules[1].permissions[1]",
        { rules: [rule, { ...rule, permissions: ["token:read", "token:use"] }] },
      ],
      [
        "a container around its own",
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
    ])("does not give %s", async (_, field, given) => {
      const { create } = await giver({ rules: [rule] });
      const { message } = await refused(create(given), "permission_denied");
      expect(message).toContain(field);
    });

    it("grants no more than its first rule allows", async () => {
      const hidden = { ...rule, transform: "redact" };
      const { create } = await giver({ rules: [hidden, { ...rule, container: "/", priority: 2 }] });
      await create({ rules: [{ ...rule, container: "/other/" }] });
      await refused(create({ rules: [rule] }), "permission_denied");
      await refused(create({ rules: [{ ...rule, container: "/" }] }), "permission_denied");
    });

    it("grants any rule of a permission that it holds directly", async () => {
      const { create } = await giver(tokenRead);
      await create({ ...tokenRead, rules: [{ ...rule, transform: "reveal" }] });
    });

    it("cannot create a management application that can create or update others, nor regenerate its key", async () => {
      const { root, create, key, make } = await giver({ permissions: own });
      const request = { name: "free", type: "management", permissions: ["application:create"] };
      const { message } = await refused(api().createApplication(key, request), "permission_denied");
      expect(message).toContain("application:create");
      const { id } = await make("management", { permissions: ["application:read"] });
      const update = { id, name: "free", permissions: ["application:read", "application:update"] };
      await refused(api().updateApplication(key, update), "permission_denied");
      const taken = api().regenerateApplicationKey(key, { id: root.applicationId });
      await refused(taken, "permission_denied");
      await create({ permissions: ["application:create"] });
      await api().regenerateApplicationKey(key, { id });
    });

    it("cannot regenerate a key whose grants its own do not cover, except its own key", async () => {
      const {
        key,
        make,
        id: ownId,
      } = await giver({
        permissions: ["application:update"],
        rules: [rule],
      });
      const wider = { ...rule, transform: "reveal" };
      for (const grants of [{ rules: [wider] }, { permissions: ["token:delete"] }]) {
        const { id } = await make("private", grants);
        const call = api().regenerateApplicationKey(key, { id });
        expect((await refused(call, "permission_denied")).message).toContain("token:");
      }
      const { id } = await make("private", { rules: [rule] });
      await api().regenerateApplicationKey(key, { id });
      await api().regenerateApplicationKey(key, { id: ownId });
    });

    it("keeps what an application has, and widens nothing", async () => {
      const { key, make } = await giver({ rules: [rule] });
      const first = { ...rule, transform: "redact" };
      const second = { ...rule, container: "/", transform: "reveal", priority: 2 };
      const { id } = await make("private", { rules: [first, second] });
      const update = (rules: (typeof rule)[]) =>
        api().updateApplication(key, { id, name: "renamed", rules });
      await update([first, second]);
      await update([{ ...rule, container: "/pci/high/" }, { ...first, priority: 2 }, second]);
      const { message } = await refused(update([second]), "permission_denied");
      expect(message).toContain("rules[0].permissions[0]");
      await update([first]);
    });
  });

  describe("a management application", () => {
    it("grants permissions of other services freely", async () => {
      const { make } = await newTenant();
      const { key } = await make("management", { permissions: managing });
      const given = { name: "made", type: "private", ...tokenRead };
      await expect(api().createApplication(key, given)).resolves.toBeDefined();
    });
  });

  describe("the last application that can create and update applications", () => {
    it.each<[what: string, change: (key: string, id: string) => Promise<unknown>]>([
      ["be disabled", (key, id) => api().disableApplication(key, { id })],
      ["be deleted", (key, id) => api().deleteApplication(key, { id })],
      [
        "lose one of the two",
        (key, id) =>
          api().updateApplication(key, { id, name: "weak", permissions: ["application:update"] }),
      ],
    ])("cannot %s, until there is another one", async (_, change) => {
      const { root, make } = await newTenant();
      const id = root.applicationId;
      const before = await api().getApplication(root.key, { id });
      await refused(change(root.key, id), "last_manager");
      expect(await api().getApplication(root.key, { id })).toEqual(before);
      await make("management", { permissions: managing });
      await change(root.key, id);
    });

    it("stays enabled when two disable each other at once", async () => {
      const { root, make } = await newTenant();
      const other = await make("management", { permissions: own });
      const outcomes = await Promise.allSettled([
        api().disableApplication(root.key, other),
        api().disableApplication(other.key, { id: root.applicationId }),
      ]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    });
  });
}
