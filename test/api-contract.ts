import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Application } from "../gen/latchkey/v1/application_service_pb.js";
import type { Bootstrapped } from "../src/bootstrap.js";
import { newId } from "../src/ids.js";
import { makeKey } from "../src/keys.js";
import { type Api, ApiFailure } from "./support/api.js";
import { engines, startServer, type TestServer } from "./support/server.js";

/** The two statuses of every refusal. */
const refusals = {
  invalid_request: { http: 400, grpc: Code.InvalidArgument },
  unauthenticated: { http: 401, grpc: Code.Unauthenticated },
  permission_denied: { http: 403, grpc: Code.PermissionDenied },
  application_not_found: { http: 404, grpc: Code.NotFound },
  nonce_not_found: { http: 404, grpc: Code.NotFound },
  nonce_used: { http: 409, grpc: Code.AlreadyExists },
} as const;

const minute = 60_000;
const tokenRead = { permissions: ["token:read"] };
const containerRule = { priority: 1, container: "/pci/", transform: "mask", ...tokenRead };
const sessionRule = {
  priority: 1,
  transform: "reveal",
  conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/" }],
  ...tokenRead,
};

interface ApiSuiteOptions {
  readonly client: string;
  readonly statuses: "http" | "grpc";
  readonly connect: (server: TestServer) => Api;
}

/** What every protocol does on every store, written once. */
export function describeApi({ client, statuses, connect }: ApiSuiteOptions): void {
  describe.each(engines)(`client=${client}/store=%s`, (engine) => {
    let server: TestServer;
    let api: Api;

    beforeAll(async () => {
      server = await startServer(engine);
      api = connect(server);
    });

    afterAll(async () => {
      api.close();
      await server.close();
    });

    async function refused(call: Promise<unknown>, reason: keyof typeof refusals) {
      const failure = await call.then(
        () => new Error("the call was not refused"),
        (error) => error,
      );
      expect(failure).toBeInstanceOf(ApiFailure);
      expect(failure).toMatchObject({ reason, status: refusals[reason][statuses] });
      expect(failure.requestId).not.toBe("");
      return failure as ApiFailure;
    }

    /** A tenant with an application of each type. */
    async function createTenant() {
      const root = await server.createTenant();
      const make = (type: string, permissions = ["token:read", "application:read"]) =>
        api.createApplication(root.key, { name: `${type} one`, type, permissions });
      const [privateOne, publicOne] = [await make("private"), await make("public")];
      return { root, make, privateKey: keyOf(privateOne), publicKey: keyOf(publicOne), publicOne };
    }

    async function openSession(tenant: Awaited<ReturnType<typeof createTenant>>) {
      const session = await api.createSession(tenant.publicKey);
      return { ...session, key: session.sessionKey };
    }

    describe("creating an application", () => {
      it("answers with the application and its key", async () => {
        const root = await server.createTenant();
        const expiresAt = timestampFromMs(server.clock.now() + minute);
        const made = await api.createApplication(root.key, {
          name: "Checkout 🛒",
          type: "private",
          permissions: ["token:create"],
          rules: [{ ...containerRule, description: "cards" }],
          expiresAt,
        });
        expect(made).toMatchObject({
          tenantId: root.tenantId,
          name: "Checkout 🛒",
          type: "private",
          permissions: ["token:create"],
          rules: [{ ...containerRule, description: "cards", conditions: [] }],
          createdBy: root.applicationId,
          expiresAt,
        });
        expect(made.key).toMatch(/^lk_prv_/);
        expect(made.modifiedAt ?? made.modifiedBy).toBeUndefined();
        expect(timestampMs(made.createdAt ?? timestampFromMs(0))).toBe(server.clock.now());
      });

      it.each(["private", "public", "management"])(
        "gives a %s one a key that works",
        async (type) => {
          const { make } = await createTenant();
          const made = await make(type);
          expect(await api.getApplicationByKey(made.key)).toMatchObject({ id: made.id, type });
        },
      );

      it("needs application:create", async () => {
        const { privateKey } = await createTenant();
        const call = api.createApplication(privateKey, {
          name: "a",
          type: "private",
          ...tokenRead,
        });
        const { message } = await refused(call, "permission_denied");
        expect(message).toContain("application:create");
        expect(message).toContain("private one");
      });

      it("counts a permission that a rule grants", async () => {
        const { root } = await createTenant();
        const rule = { ...containerRule, permissions: ["application:create"] };
        const creator = await api.createApplication(root.key, {
          name: "creator",
          type: "private",
          rules: [rule],
        });
        const request = { name: "made by a rule", type: "private", ...tokenRead };
        expect(await api.createApplication(creator.key, request)).toMatchObject({
          createdBy: creator.id,
        });
      });

      it.each<[what: string, field: string, change: object]>([
        ["no name", "name", { name: "" }],
        ["a blank name", "name", { name: "  " }],
        ["a name of 201 characters", "name", { name: "é".repeat(201) }],
        ["a name of 201 emoji", "name", { name: "🗝".repeat(201) }],
        ["control characters in the name", "name", { name: "a\u0000b" }],
        ["two lines in the name", "name", { name: "a\nb" }],
        ["an unknown type", "type", { type: "secret" }],
        ["a type in capitals", "type", { type: "Private" }],
        ["no type", "type", { type: "" }],
        ["neither permissions nor rules", "request", { permissions: [], rules: [] }],
        ["a permission of one segment", "permissions[0]", { permissions: ["token"] }],
        ["a permission of four segments", "permissions[0]", { permissions: ["a:b:c:d"] }],
        ["a permission in capitals", "permissions[0]", { permissions: ["Token:read"] }],
        ["a permission twice", "permissions", { permissions: ["a:b", "a:b"] }],
        [
          "51 permissions",
          "permissions",
          { permissions: Array.from({ length: 51 }, (_, i) => `a:b${i}`) },
        ],
        ["a rule without container", "rules[0].container", { rules: [without("container")] }],
        ["a rule with conditions", "rules[0]", { rules: [sessionRule] }],
        [
          "a rule with container and conditions",
          "rules[0]",
          { rules: [{ ...sessionRule, container: "/" }] },
        ],
        ["priority 0", "rules[0].priority", { rules: [{ ...containerRule, priority: 0 }] }],
        ["no priority", "rules[0].priority", { rules: [without("priority")] }],
        [
          "a negative priority",
          "rules[0].priority",
          { rules: [{ ...containerRule, priority: -1 }] },
        ],
        ["no transform", "rules[0].transform", { rules: [without("transform")] }],
        [
          "an unknown transform",
          "rules[0].transform",
          { rules: [{ ...containerRule, transform: "show" }] },
        ],
        ["a rule that grants nothing", "rules[0].permissions", { rules: [without("permissions")] }],
        ["an expiry in the past", "expires_at", { expiresAt: timestampFromMs(1_000) }],
      ])("with %s is refused", async (_what, field, change) => {
        const root = await server.createTenant();
        const request = { name: "a", type: "private", ...tokenRead, ...change };
        const { errors } = await refused(
          api.createApplication(root.key, request),
          "invalid_request",
        );
        expect(Object.keys(errors)).toContain(field);
        expect((await api.listApplications(root.key)).pagination?.totalItems).toBe(1);
      });

      it("takes a name of 200 characters, whatever their size", async () => {
        const root = await server.createTenant();
        const name = "🗝".repeat(200);
        const made = await api.createApplication(root.key, { name, type: "private", ...tokenRead });
        expect(made.name).toBe(name);
      });

      it("takes rules without a container for a management application", async () => {
        const root = await server.createTenant();
        const rules = [without("container")];
        const made = await api.createApplication(root.key, {
          name: "a",
          type: "management",
          rules,
        });
        expect(made.rules[0]?.container).toBeUndefined();
      });

      it("refuses an expiry that is now", async () => {
        const root = await server.createTenant();
        const expiresAt = timestampFromMs(server.clock.now());
        const request = { name: "a", type: "private", ...tokenRead, expiresAt };
        await refused(api.createApplication(root.key, request), "invalid_request");
      });

      it.each(["application:create", "application:update", "application:delete"])(
        "cannot give a public application %s, directly or by a rule",
        async (permission) => {
          const root = await server.createTenant();
          const attempts = [
            { permissions: ["token:read", permission] },
            { rules: [{ ...containerRule, permissions: [permission] }] },
          ];
          const fields = ["permissions[1]", "rules[0].permissions[0]"];
          for (const [at, grants] of attempts.entries()) {
            const call = api.createApplication(root.key, { name: "a", type: "public", ...grants });
            const { errors } = await refused(call, "invalid_request");
            expect(Object.keys(errors)).toEqual([fields[at]]);
          }
        },
      );

      it("cannot give a permission of this service that the caller lacks", async () => {
        const { make } = await createTenant();
        const creator = await make("management", ["application:create"]);
        const permissions = ["application:create", "application:delete", "token:delete"];
        const call = api.createApplication(creator.key, {
          name: "a",
          type: "private",
          permissions,
        });
        const { message } = await refused(call, "permission_denied");
        expect(message).toContain("application:delete");
        expect(message).not.toContain("token:delete");
      });

      it("gives permissions of other services freely", async () => {
        const { make } = await createTenant();
        const creator = await make("management", ["application:create"]);
        const permissions = ["token:read", "invoice:line:write"];
        const made = await api.createApplication(creator.key, {
          name: "a",
          type: "private",
          permissions,
        });
        expect(made.permissions).toEqual(permissions);
      });
    });

    describe("listing applications", () => {
      async function createMany(count: number): Promise<[Bootstrapped, string[]]> {
        const root = await server.createTenant();
        const ids = [root.applicationId];
        for (let i = 0; i < count; i++) {
          server.clock.advance(1);
          const request = { name: `app ${i}`, type: "private", ...tokenRead };
          ids.unshift((await api.createApplication(root.key, request)).id);
        }
        return [root, ids];
      }

      it("shows the newest first, without keys, and where the page stands", async () => {
        const [root, ids] = await createMany(3);
        const { pagination, data } = await api.listApplications(root.key);
        expect(data.map(({ id }) => id)).toEqual(ids);
        expect(data.map(({ key }) => key)).toEqual(ids.map(() => undefined));
        expect(pagination).toMatchObject({
          totalItems: 4,
          pageNumber: 1,
          pageSize: 20,
          totalPages: 1,
        });
        expect(pagination?.next).toBeUndefined();
      });

      it("goes page by page, and past the end there is nothing", async () => {
        const [root, ids] = await createMany(4);
        const pages = await Promise.all(
          [1, 2, 3, 4].map((page) => api.listApplications(root.key, { page, size: 2 })),
        );
        const shown = pages.map(({ data }) => data.map(({ id }) => id));
        expect(shown).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4), []]);
        expect(pages[3]?.pagination).toMatchObject({ totalItems: 5, totalPages: 3, pageNumber: 4 });
      });

      it("walks by cursor through everything, once", async () => {
        const [root, ids] = await createMany(4);
        const seen: string[] = [];
        let page = await api.listApplications(root.key, { size: 2 });
        for (;;) {
          seen.push(...page.data.map(({ id }) => id));
          const start = page.pagination?.next;
          if (start === undefined) {
            break;
          }
          page = await api.listApplications(root.key, { start, size: 2 });
          expect(page.pagination?.totalItems).toBeUndefined();
        }
        expect(seen).toEqual(ids);
      });

      it("shows only the ids that are asked for", async () => {
        const [root, ids] = await createMany(3);
        const other = await server.createTenant();
        const wanted = [ids[2], ids[0], newId(0), other.applicationId] as string[];
        const { data, pagination } = await api.listApplications(root.key, { id: wanted });
        expect(data.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
        expect(pagination?.totalItems).toBe(2);
      });

      it("shows nothing of other tenants", async () => {
        const [root] = await createMany(1);
        const other = await server.createTenant();
        const { data } = await api.listApplications(other.key);
        expect(data.map(({ id }) => id)).toEqual([other.applicationId]);
        expect(root.tenantId).not.toBe(other.tenantId);
      });

      it.each<[what: string, field: string, request: object]>([
        ["page 0", "page", { page: 0 }],
        ["size 0", "size", { size: 0 }],
        ["size 101", "size", { size: 101 }],
        ["an id that is no UUID", "id[0]", { id: ["42"] }],
        ["a cursor that nobody gave out", "start", { start: "abc" }],
        ["a page and a cursor", "request", { page: 1, start: "abc" }],
      ])("refuses %s", async (_what, field, request) => {
        const root = await server.createTenant();
        const call = api.listApplications(root.key, request);
        expect(Object.keys((await refused(call, "invalid_request")).errors)).toContain(field);
      });

      it("refuses a cursor that was tampered with, or that is another tenant's", async () => {
        const [root] = await createMany(2);
        const next = (await api.listApplications(root.key, { size: 1 })).pagination?.next ?? "";
        const other = await server.createTenant();
        await refused(api.listApplications(other.key, { start: next }), "invalid_request");
        const tampered = (next.startsWith("A") ? "B" : "A") + next.slice(1);
        await refused(api.listApplications(root.key, { start: tampered }), "invalid_request");
      });

      it("needs application:read", async () => {
        const { make } = await createTenant();
        const blind = await make("private", ["token:read"]);
        await refused(api.listApplications(blind.key), "permission_denied");
      });
    });

    describe("getting an application", () => {
      it("answers with it, without its key, also for an id in capitals", async () => {
        const { root, publicOne } = await createTenant();
        const { key: _key, ...rest } = publicOne;
        expect(await api.getApplication(root.key, { id: publicOne.id })).toEqual(rest);
        expect(await api.getApplication(root.key, { id: publicOne.id.toUpperCase() })).toEqual(
          rest,
        );
      });

      it("says of another tenant's what it says of one that does not exist", async () => {
        const { root } = await createTenant();
        const other = await server.createTenant();
        for (const id of [other.applicationId, newId(0)]) {
          const { message } = await refused(
            api.getApplication(root.key, { id }),
            "application_not_found",
          );
          expect(message.replace(id, "…")).toContain("no application … in the tenant");
        }
      });

      it("refuses an id that is no UUID", async () => {
        const root = await server.createTenant();
        const { errors } = await refused(
          api.getApplication(root.key, { id: "42" }),
          "invalid_request",
        );
        expect(errors).toHaveProperty("id");
      });

      it("needs application:read", async () => {
        const { make, publicOne } = await createTenant();
        const blind = await make("private", ["token:read"]);
        await refused(api.getApplication(blind.key, publicOne), "permission_denied");
      });
    });

    describe("getting an application by its key", () => {
      it("answers with the application of the key, without the key", async () => {
        const { publicKey, publicOne } = await createTenant();
        const { key: _key, ...rest } = publicOne;
        expect(await api.getApplicationByKey(publicKey)).toEqual(rest);
      });

      it("answers a session with the application that it was opened with", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const permissions = ["application:read"];
        await api.authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
        expect(await api.getApplicationByKey(session.key)).toMatchObject({
          id: tenant.publicOne.id,
        });
      });

      it("needs application:read", async () => {
        const { make } = await createTenant();
        const blind = await make("private", ["token:read"]);
        await refused(api.getApplicationByKey(blind.key), "permission_denied");
      });
    });

    describe("updating an application", () => {
      it("replaces name, permissions and rules as a whole, and nothing else", async () => {
        const { root, publicOne, publicKey } = await createTenant();
        server.clock.advance(1);
        const rules = [containerRule];
        const updated = await api.updateApplication(root.key, {
          id: publicOne.id,
          name: "renamed",
          rules,
        });
        const { key: _key, ...before } = publicOne;
        expect(updated).toEqual({
          ...before,
          name: "renamed",
          permissions: [],
          rules: [expect.objectContaining(containerRule)],
          modifiedBy: root.applicationId,
          modifiedAt: timestampFromMs(server.clock.now()),
        });
        expect(await api.getApplication(root.key, publicOne)).toEqual(updated);
        await refused(api.getApplicationByKey(publicKey), "permission_denied");
      });

      it.each<[what: string, field: string, change: object]>([
        ["no name", "name", { name: "" }],
        ["a name of 201 characters", "name", { name: "x".repeat(201) }],
        ["neither permissions nor rules", "request", { permissions: [] }],
        ["a rule without container", "rules[0].container", { rules: [without("container")] }],
        [
          "what a public one cannot hold",
          "permissions[0]",
          { permissions: ["application:delete"] },
        ],
      ])("with %s is refused and changes nothing", async (_what, field, change) => {
        const { root, publicOne } = await createTenant();
        const request = { id: publicOne.id, name: "renamed", ...tokenRead, ...change };
        const { errors } = await refused(
          api.updateApplication(root.key, request),
          "invalid_request",
        );
        expect(Object.keys(errors)).toContain(field);
        expect(await api.getApplication(root.key, publicOne)).toMatchObject({
          name: publicOne.name,
          permissions: publicOne.permissions,
        });
      });

      it("cannot give a permission of this service that the caller lacks", async () => {
        const { root, make } = await createTenant();
        const updater = await make("management", ["application:update"]);
        const target = await make("private");
        const permissions = ["application:delete"];
        const request = { id: target.id, name: "a", permissions };
        await refused(api.updateApplication(updater.key, request), "permission_denied");
        expect((await api.getApplication(root.key, target)).permissions).toEqual(
          target.permissions,
        );
      });

      it("finds nothing in other tenants", async () => {
        const { publicOne, root } = await createTenant();
        const other = await server.createTenant();
        const request = { id: publicOne.id, name: "mine now", ...tokenRead };
        await refused(api.updateApplication(other.key, request), "application_not_found");
        expect((await api.getApplication(root.key, publicOne)).name).toBe(publicOne.name);
      });

      it("needs application:update", async () => {
        const { privateKey, publicOne } = await createTenant();
        const request = { id: publicOne.id, name: "a", ...tokenRead };
        await refused(api.updateApplication(privateKey, request), "permission_denied");
      });
    });

    describe("regenerating a key", () => {
      it("gives a new key and ends the old one at once", async () => {
        const { root, publicOne, publicKey } = await createTenant();
        const { key, ...rest } = await api.regenerateApplicationKey(root.key, publicOne);
        expect(rest).toMatchObject({ id: publicOne.id, modifiedBy: root.applicationId });
        expect(key).not.toBe(publicKey);
        await refused(api.getApplicationByKey(publicKey), "unauthenticated");
        expect(await api.getApplicationByKey(key)).toEqual(rest);
      });

      it("leaves sessions alone", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const permissions = ["application:read"];
        await api.authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
        await api.regenerateApplicationKey(tenant.root.key, tenant.publicOne);
        await expect(api.getApplicationByKey(session.key)).resolves.toBeDefined();
      });

      it("is how a caller may renew its own key", async () => {
        const root = await server.createTenant();
        const { key } = await api.regenerateApplicationKey(root.key, { id: root.applicationId });
        await refused(api.getApplicationByKey(root.key), "unauthenticated");
        await expect(api.getApplicationByKey(key)).resolves.toBeDefined();
      });

      it("cannot take over permissions of this service that the caller lacks", async () => {
        const { root, make } = await createTenant();
        const updater = await make("management", ["application:update"]);
        const call = api.regenerateApplicationKey(updater.key, { id: root.applicationId });
        expect((await refused(call, "permission_denied")).message).toContain("application:create");
        await expect(api.getApplicationByKey(root.key)).resolves.toBeDefined();
      });

      it("leaves one key that works when two do it at once", async () => {
        const { root, publicOne } = await createTenant();
        const made = await Promise.all(
          Array.from({ length: 5 }, () => api.regenerateApplicationKey(root.key, publicOne)),
        );
        const tries = await Promise.allSettled(made.map(({ key }) => api.getApplicationByKey(key)));
        expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      });

      it("finds nothing in other tenants", async () => {
        const { publicOne, publicKey } = await createTenant();
        const other = await server.createTenant();
        await refused(api.regenerateApplicationKey(other.key, publicOne), "application_not_found");
        await expect(api.getApplicationByKey(publicKey)).resolves.toBeDefined();
      });

      it("needs application:update", async () => {
        const { privateKey, publicOne } = await createTenant();
        await refused(api.regenerateApplicationKey(privateKey, publicOne), "permission_denied");
      });
    });

    describe("deleting an application", () => {
      it("ends its key at once, and it is there no more", async () => {
        const { root, publicOne, publicKey } = await createTenant();
        await api.deleteApplication(root.key, publicOne);
        await refused(api.getApplicationByKey(publicKey), "unauthenticated");
        await refused(api.getApplication(root.key, publicOne), "application_not_found");
        await refused(api.deleteApplication(root.key, publicOne), "application_not_found");
      });

      it("ends its sessions at once, and their nonces", async () => {
        const tenant = await createTenant();
        const [open, authorized] = [await openSession(tenant), await openSession(tenant)];
        const permissions = ["application:read"];
        await api.authorizeSession(tenant.privateKey, { nonce: authorized.nonce, permissions });
        await api.deleteApplication(tenant.root.key, tenant.publicOne);
        await refused(api.getApplicationByKey(authorized.key), "unauthenticated");
        const late = api.authorizeSession(tenant.privateKey, { nonce: open.nonce, permissions });
        await refused(late, "nonce_not_found");
      });

      it("finds nothing in other tenants", async () => {
        const { publicOne, publicKey } = await createTenant();
        const other = await server.createTenant();
        await refused(api.deleteApplication(other.key, publicOne), "application_not_found");
        await expect(api.getApplicationByKey(publicKey)).resolves.toBeDefined();
      });

      it("needs application:delete", async () => {
        const { privateKey, publicOne } = await createTenant();
        await refused(api.deleteApplication(privateKey, publicOne), "permission_denied");
      });
    });

    describe("an application that expires", () => {
      it("works to the last millisecond and no longer", async () => {
        const { root } = await createTenant();
        const expiresAt = timestampFromMs(server.clock.now() + minute);
        const permissions = ["application:read"];
        const request = { name: "brief", type: "private", permissions, expiresAt };
        const made = await api.createApplication(root.key, request);
        server.clock.advance(minute - 1);
        await expect(api.getApplicationByKey(made.key)).resolves.toBeDefined();
        server.clock.advance(1);
        await refused(api.getApplicationByKey(made.key), "unauthenticated");
        await refused(api.getApplication(root.key, made), "application_not_found");
      });

      it("takes its sessions with it", async () => {
        const { root, privateKey } = await createTenant();
        const expiresAt = timestampFromMs(server.clock.now() + 1_000);
        const request = { name: "brief", type: "public", ...tokenRead, expiresAt };
        const made = await api.createApplication(root.key, request);
        const session = await api.createSession(made.key);
        const permissions = ["application:read"];
        await api.authorizeSession(privateKey, { nonce: session.nonce, permissions });
        await expect(api.getApplicationByKey(session.sessionKey)).resolves.toBeDefined();
        server.clock.advance(1_000);
        await refused(api.getApplicationByKey(session.sessionKey), "unauthenticated");
      });
    });

    describe("opening a session", () => {
      it("answers with its key, its nonce and its end, 3 minutes ahead", async () => {
        const { publicKey } = await createTenant();
        const session = await api.createSession(publicKey);
        expect(session.sessionKey).toMatch(/^lk_ses_/);
        expect(session.nonce).toMatch(/^lk_non_/);
        expect(session.expiresAt).toEqual(timestampFromMs(server.clock.now() + 3 * minute));
      });

      it("needs the key of a public application", async () => {
        const { root, privateKey, publicKey } = await createTenant();
        const { sessionKey } = await api.createSession(publicKey);
        for (const key of [root.key, privateKey, sessionKey]) {
          const { message } = await refused(api.createSession(key), "permission_denied");
          expect(message).toContain("public application");
        }
      });

      it("gives no access until it is authorized", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const { message } = await refused(
          api.getApplicationByKey(session.key),
          "permission_denied",
        );
        expect(message).toContain("not authorized yet");
      });
    });

    describe("authorizing a session", () => {
      it("gives it the permissions granted and no others", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const permissions = ["application:read"];
        await api.authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
        await expect(api.listApplications(session.key)).resolves.toBeDefined();
        await refused(api.deleteApplication(session.key, tenant.publicOne), "permission_denied");
      });

      it("counts a permission that a rule grants", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const rules = [{ ...sessionRule, permissions: ["application:read"] }];
        await api.authorizeSession(tenant.privateKey, { nonce: session.nonce, rules });
        await expect(api.getApplicationByKey(session.key)).resolves.toBeDefined();
      });

      it("works once for each nonce", async () => {
        const tenant = await createTenant();
        const { nonce } = await openSession(tenant);
        await api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
        await refused(
          api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead }),
          "nonce_used",
        );
      });

      it("lets one of many win that try the same nonce at once", async () => {
        const tenant = await createTenant();
        const { nonce } = await openSession(tenant);
        const tries = await Promise.allSettled(
          Array.from({ length: 10 }, () =>
            api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead }),
          ),
        );
        const losers = tries.flatMap((it) => (it.status === "rejected" ? it.reason.reason : []));
        expect(losers).toEqual(Array(9).fill("nonce_used"));
      });

      it("needs the key of a private application", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        for (const key of [tenant.root.key, tenant.publicKey, session.key]) {
          const call = api.authorizeSession(key, { nonce: session.nonce, ...tokenRead });
          expect((await refused(call, "permission_denied")).message).toContain(
            "private application",
          );
        }
      });

      it("cannot grant what the authorizer lacks, and leaves the nonce good", async () => {
        const tenant = await createTenant();
        const { nonce } = await openSession(tenant);
        const attempts = [
          { permissions: ["token:read", "token:delete"] },
          { rules: [{ ...sessionRule, permissions: ["token:delete"] }] },
        ];
        for (const grants of attempts) {
          const call = api.authorizeSession(tenant.privateKey, { nonce, ...grants });
          expect((await refused(call, "permission_denied")).message).toContain("token:delete");
        }
        await api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
      });

      it("finds no nonce of another tenant, and leaves it good", async () => {
        const [one, other] = [await createTenant(), await createTenant()];
        const { nonce } = await openSession(one);
        const call = api.authorizeSession(other.privateKey, { nonce, ...tokenRead });
        await refused(call, "nonce_not_found");
        await api.authorizeSession(one.privateKey, { nonce, ...tokenRead });
      });

      it("finds no nonce that was made up, mistyped, or is a key", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const madeUp = makeKey("non", newId(0));
        for (const nonce of [madeUp, "nonce", `${session.nonce}x`, session.key]) {
          const call = api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
          await refused(call, "nonce_not_found");
        }
      });

      it("finds no nonce of a session that has expired", async () => {
        const tenant = await createTenant();
        const [used, unused] = [await openSession(tenant), await openSession(tenant)];
        await api.authorizeSession(tenant.privateKey, { nonce: used.nonce, ...tokenRead });
        server.clock.advance(3 * minute);
        for (const { nonce } of [used, unused]) {
          const call = api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
          await refused(call, "nonce_not_found");
        }
      });

      it.each<[what: string, field: string, change: object]>([
        ["no nonce", "nonce", { nonce: "" }],
        ["neither permissions nor rules", "request", { permissions: [] }],
        ["a rule with a container", "rules[0]", { rules: [containerRule] }],
        ["a rule without conditions", "rules[0]", { rules: [without("container")] }],
        [
          "an unknown attribute",
          "rules[0].conditions[0].attribute",
          withCondition({ attribute: "name" }),
        ],
        [
          "an unknown operator",
          "rules[0].conditions[0].operator",
          withCondition({ operator: "matches" }),
        ],
        ["no value", "rules[0].conditions[0].value", withCondition({ value: "" })],
        ["an expiry in the past", "expires_at", { expiresAt: timestampFromMs(1_000) }],
      ])("with %s is refused and leaves the nonce good", async (_what, field, change) => {
        const tenant = await createTenant();
        const { nonce } = await openSession(tenant);
        const call = api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead, ...change });
        expect(Object.keys((await refused(call, "invalid_request")).errors)).toContain(field);
        await api.authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
      });
    });

    describe("a session that expires", () => {
      const permissions = ["application:read"];

      it("ends 3 minutes after it was opened, to the millisecond", async () => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        server.clock.advance(minute);
        await api.authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
        server.clock.advance(2 * minute - 1);
        await expect(api.getApplicationByKey(session.key)).resolves.toBeDefined();
        server.clock.advance(1);
        await refused(api.getApplicationByKey(session.key), "unauthenticated");
      });

      it.each([1_000, 10 * minute])("ends %d ms ahead where authorizing says so", async (ahead) => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const expiresAt = timestampFromMs(server.clock.now() + ahead);
        const request = { nonce: session.nonce, permissions, expiresAt };
        await api.authorizeSession(tenant.privateKey, request);
        server.clock.advance(ahead - 1);
        await expect(api.getApplicationByKey(session.key)).resolves.toBeDefined();
        server.clock.advance(1);
        await refused(api.getApplicationByKey(session.key), "unauthenticated");
      });
    });

    describe("a call without a good key", () => {
      it("gets one and the same answer, whatever is wrong with the key", async () => {
        const { root, make, publicKey } = await createTenant();
        const [deleted, replaced, brief] = [
          await make("private"),
          await make("private"),
          await make("private"),
        ];
        await api.deleteApplication(root.key, deleted);
        await api.regenerateApplicationKey(root.key, replaced);
        const { nonce } = await api.createSession(publicKey);
        const bad = [
          undefined,
          "",
          "secret",
          `${publicKey.slice(0, -1)}${publicKey.endsWith("0") ? "1" : "0"}`,
          makeKey("prv", newId(0)),
          makeKey("prv", brief.id),
          makeKey("mgt", brief.id),
          makeKey("ses", brief.id),
          deleted.key,
          replaced.key,
          nonce,
          "x".repeat(5_000),
        ];
        const messages = new Set<string>();
        for (const key of bad) {
          messages.add((await refused(api.getApplicationByKey(key), "unauthenticated")).message);
        }
        expect(messages.size).toBe(1);
      });

      it("is told so before anything about its request", async () => {
        await refused(api.createApplication(undefined, { name: "" }), "unauthenticated");
        await refused(api.getApplication(undefined, { id: "42" }), "unauthenticated");
      });
    });
  });
}

function keyOf({ key }: Application): string {
  if (key === undefined) {
    throw new Error("the answer has no key");
  }
  return key;
}

function without(field: keyof typeof containerRule) {
  return { ...containerRule, [field]: undefined };
}

function withCondition(change: object) {
  const [condition] = sessionRule.conditions;
  return { rules: [{ ...sessionRule, conditions: [{ ...condition, ...change }] }] };
}
