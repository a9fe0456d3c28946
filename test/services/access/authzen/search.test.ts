import { describe, expect, it } from "@jest/globals";
import { parseKey } from "../../../../src/contract/key-format.js";
import { seedTenant, sessionRule } from "../../../contract/api/fixtures.js";
import { engines } from "../../../support/service/server.js";
import { alice, bob, paths, read, record1, useAuthZenTarget, write } from "./fixture.js";

describe.each(engines)("a subject search on %s", (engine) => {
  const target = useAuthZenTarget({ engine });
  const users = { subject: { type: "user" }, action: read, resource: record1 };

  async function search(request: object, key = target.key) {
    const headers = { "svc-api-key": key };
    const { status, body } = await target.post(paths.searchSubject, request, headers);
    expect(status).toBe(200);
    return body;
  }

  it("finds applications by id or external id, newest first", async () => {
    expect((await search(users)).results).toEqual([bob, alice]);
    const applications = { ...users, subject: { type: "application" } };
    expect((await search(applications)).results).toEqual(
      [target.bob.id, target.alice.id].map((id) => ({ type: "application", id })),
    );
    expect((await search({ ...users, action: write })).results).toEqual([alice]);
  });

  it("returns only subjects that the evaluation permits", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const rule = { priority: 1, transform: "mask", permissions: ["record:read"] };
    const create = (externalId: string, fields: object) =>
      tenant.createApplication("private", { externalId, ...fields });
    await create("everything", { permissions: ["record:read"] });
    await create("inside", { rules: [{ ...rule, container: "/eu/" }] });
    await create("outside", { rules: [{ ...rule, container: "/us/" }] });
    await create("elsewhere", { permissions: ["record:read"], allowedCidrs: ["203.0.113.0/24"] });
    const disabled = await create("disabled", { permissions: ["record:read"] });
    await target.api.disableApplication(tenant.root.key, { id: disabled.id });
    await tenant.createApplication("private", { permissions: ["record:read"] });

    const resource = { ...record1, properties: { container: "/eu/de/" } };
    const context = { address: "203.0.113.7" };
    for (const [given, expected] of [
      [{ resource }, ["everything", "inside"]],
      [{ resource, context }, ["elsewhere", "everything", "inside"]],
      [{}, ["everything"]],
    ] as const) {
      const { results } = await search({ ...users, ...given }, tenant.backend.key);
      expect(results.map(({ id }: { id: string }) => id).sort()).toEqual(expected);
      for (const subject of results) {
        const request = { ...users, ...given, subject };
        const headers = { "svc-api-key": tenant.backend.key };
        expect((await target.post(paths.evaluation, request, headers)).body.decision).toBe(true);
      }
    }
  });

  it.each<[name: string, request: object]>([
    ["sessions", { subject: { type: "session" } }],
    ["keys", { subject: { type: "api_key" } }],
    ["an unknown type", { subject: { type: "__proto__" } }],
    ["a permission that nobody holds", { action: { name: "purge" } }],
    ["a permission that cannot exist", { action: { name: "x".repeat(5_000) } }],
    ["a resource that cannot exist", { resource: { type: "record", id: "\u0000" } }],
  ])("finds nothing for %s", async (_name, request) => {
    expect(await search({ ...users, ...request })).toEqual({
      page: { next_token: "" },
      results: [],
    });
  });

  it("finds nothing of another tenant", async () => {
    const { key } = await target.server.createTenant();
    expect((await search(users, key)).results).toEqual([]);
  });

  it("returns every subject once on its pages, whatever their size", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const ids = Array.from({ length: 7 }, (_, index) => `user-${index}`);
    for (const externalId of ids) {
      target.server.clock.advance(1);
      await tenant.createApplication("private", { externalId, permissions: ["record:read"] });
      await tenant.createApplication("private", { permissions: ["record:read"] });
    }
    for (const limit of [1, 2, 5, 14, 100, 1_000, 0]) {
      const found: string[] = [];
      let token = "";
      do {
        const page = { limit, token };
        const { page: next, results } = await search({ ...users, page }, tenant.backend.key);
        expect(results.length).toBeLessThanOrEqual(limit || 100);
        found.push(...results.map(({ id }: { id: string }) => id));
        token = next.next_token;
      } while (token !== "");
      expect(found).toEqual(ids.toReversed());
    }
  });

  it("refuses a page token of another search, of another tenant or of nobody with 400", async () => {
    const page = { limit: 1 };
    const { next_token: token } = (await search({ ...users, page })).page;
    const other = await target.server.createTenant();
    const refused: [request: object, key?: string][] = [
      [{ ...users, page: { token: "invalid" } }],
      [{ ...users, page: { token: `${token.slice(0, -2)}xx` } }],
      [{ ...users, action: write, page: { token } }],
      [{ ...users, subject: { type: "application" }, page: { token } }],
      [{ ...users, resource: { type: "record", id: "record-2" }, page: { token } }],
      [{ ...users, page: { token } }, other.key],
    ];
    for (const [request, key = target.key] of refused) {
      const headers = { "svc-api-key": key };
      const { status, body } = await target.post(paths.searchSubject, request, headers);
      expect({ status, fields: Object.keys(body.errors) }).toEqual({
        status: 400,
        fields: ["page.token"],
      });
    }
    expect((await search({ ...users, page: { token } })).results).toEqual([alice]);
  });

  it.each<[name: string, page: unknown, field: string]>([
    ["a negative limit", { limit: -1 }, "page.limit"],
    ["a fractional limit", { limit: 1.5 }, "page.limit"],
    ["a limit of a wrong type", { limit: "1" }, "page.limit"],
    ["a token of a wrong type", { token: 1 }, "page.token"],
    ["a page of a wrong type", "1", "page"],
  ])("refuses %s with 400", async (_name, page, field) => {
    const { status, body } = await target.post(paths.searchSubject, { ...users, page });
    expect({ status, fields: Object.keys(body.errors) }).toEqual({ status: 400, fields: [field] });
  });
});

describe("an action search", () => {
  const target = useAuthZenTarget();

  async function search(request: object, key = target.key) {
    const headers = { "svc-api-key": key };
    const { status, body } = await target.post(paths.searchAction, request, headers);
    expect(status).toBe(200);
    return body.results.map(({ name }: { name: string }) => name);
  }

  it("finds the actions that the evaluation permits", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const subject = { type: "user", id: "dora" };
    const rule = { priority: 1, transform: "mask" };
    await tenant.createApplication("private", {
      externalId: "dora",
      permissions: ["record:read", "record:export:bulk", "records:list", "other:read"],
      rules: [
        { ...rule, container: "/eu/", permissions: ["record:write", "record:read"] },
        { ...rule, container: "/us/", permissions: ["record:delete"] },
      ],
    });
    const resource = { ...record1, properties: { container: "/eu/de/" } };
    const names = await search({ subject, resource }, tenant.backend.key);
    expect(names).toEqual(["read", "record:export:bulk", "write"]);
    for (const name of names) {
      const request = { subject, resource, action: { name } };
      const headers = { "svc-api-key": tenant.backend.key };
      expect((await target.post(paths.evaluation, request, headers)).body.decision).toBe(true);
    }
    const bulk = { type: "record:export", id: "record-1" };
    expect(await search({ subject, resource: bulk }, tenant.backend.key)).toEqual(["bulk"]);
  });

  it("limits a session to its authorizer, and finds nothing before it is authorized", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const authorized = await tenant.openSession({
      permissions: ["token:create", "token:use"],
      rules: [sessionRule],
    });
    const waiting = await tenant.openSession();
    const resource = { type: "token", id: "card-1", properties: { container: "/pci/" } };
    const find = ({ key: id }: { key: string }) =>
      search({ subject: { type: "api_key", id }, resource }, tenant.backend.key);
    expect(await find(authorized)).toEqual(["create", "use", "read"]);
    expect(await find(waiting)).toEqual([]);
    await target.api.updateApplication(tenant.root.key, {
      id: tenant.backend.id,
      name: "backend",
      permissions: ["token:use", "access:check"],
    });
    expect(await find(authorized)).toEqual(["use"]);
    const subject = { type: "session", id: parseKey(authorized.key)?.id };
    expect(await search({ subject, resource }, tenant.backend.key)).toEqual(["use"]);
  });

  it.each<[name: string, request: object]>([
    ["an unknown subject", { subject: { type: "user", id: "mallory" } }],
    ["a subject that cannot exist", { subject: { type: "application", id: "alice" } }],
    ["a type of resource without permissions", { resource: { type: "spaceship", id: "1" } }],
    ["a type of resource that cannot exist", { resource: { type: "Record", id: "1" } }],
  ])("finds nothing for %s", async (_name, request) => {
    expect(await search({ subject: alice, resource: record1, ...request })).toEqual([]);
  });

  it("ignores a page and an action", async () => {
    const request = { subject: alice, resource: record1, action: 1, page: { limit: 1 } };
    expect(await search(request)).toEqual(["read", "write"]);
  });
});
