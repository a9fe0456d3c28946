import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const restrictions = {
  allowed_origins: ["https://shop.example.com"],
  allowed_cidrs: ["127.0.0.0/8"],
};
const update = { name: "renamed", permissions: ["token:read"] };
let server: TestServer;
let key: string;

beforeAll(async () => {
  server = await startServer();
  ({ key } = await server.createTenant());
});

afterAll(() => server.close());

async function call(method: string, path: string, body: object | null, given: object = {}) {
  const headers = { "svc-api-key": key, "content-type": "application/json", ...given };
  const text = body === null ? "" : JSON.stringify(body);
  const response = await send(server, path, { method, headers, body: text });
  return { status: response.status, headers: response.headers, json: JSON.parse(response.body) };
}

const mergePatch = { "content-type": "application/merge-patch+json" };

async function get(path: string) {
  const response = await send(server, path, { headers: { "svc-api-key": key } });
  return JSON.parse(response.body);
}

const everything = {
  name: "one",
  type: "public",
  permissions: ["token:use"],
  rules: [{ priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] }],
  ...restrictions,
  session_quota: 7,
  expires_at: "2100-01-01T00:00:00.000Z",
  description: "a",
  metadata: { team: "payments", tier: "gold" },
};

/** Creates an application with all fields and returns its path, and how it is shown. */
async function createFull() {
  const external_id = randomUUID();
  const { json } = await call("POST", "/applications", { ...everything, external_id });
  const path = `/applications/${json.id}`;
  return { path, shown: await get(path) };
}

/** Creates an application with restrictions and returns its path. */
async function createRestricted(): Promise<string> {
  const body = { name: "one", type: "public", permissions: ["token:use"], ...restrictions };
  return `/applications/${(await call("POST", "/applications", body)).json.id}`;
}

describe("PUT /applications/{id}", () => {
  it("leaves restrictions that are not in the body unchanged", async () => {
    const { status, json } = await call("PUT", await createRestricted(), update);
    expect([status, json]).toMatchObject([200, { ...update, rules: [], ...restrictions }]);
  });

  it.each(["allowed_origins", "allowed_cidrs"])(
    "clears %s with [] and with null",
    async (field) => {
      for (const empty of [[], null]) {
        const { status, json } = await call("PUT", await createRestricted(), {
          ...update,
          [field]: empty,
        });
        expect([status, json]).toMatchObject([200, { ...restrictions, [field]: [] }]);
      }
    },
  );

  it("replaces a restriction in the body and leaves the other", async () => {
    const allowed_cidrs = ["10.0.0.0/8"];
    const { json } = await call("PUT", await createRestricted(), { ...update, allowed_cidrs });
    expect(json).toMatchObject({ ...restrictions, allowed_cidrs });
  });

  it.each([
    ["description", ["", null], undefined],
    ["external_id", ["", null], undefined],
    ["metadata", [{}, null], {}],
    ["expires_at", [null], undefined],
  ])("clears %s with each of %j", async (field, empties, cleared) => {
    const given = {
      description: "a",
      metadata: { b: "c" },
      expires_at: "2100-01-01T00:00:00.000Z",
    };
    for (const [index, empty] of empties.entries()) {
      const external_id = `${field}-${index}`;
      const body = { name: "one", type: "private", permissions: ["token:use"], ...given };
      const { json: created } = await call("POST", "/applications", { ...body, external_id });
      const path = `/applications/${created.id}`;
      const kept = await call("PUT", path, update);
      expect(kept.json).toMatchObject({ ...given, external_id });
      const { status, json } = await call("PUT", path, { ...update, [field]: empty });
      expect(status).toBe(200);
      expect(json).toEqual({
        ...kept.json,
        [field]: cleared,
        version: expect.any(String),
        modified_at: expect.any(String),
      });
    }
  });

  it("refuses update_mask in a REST body", async () => {
    const body = { ...update, update_mask: "allowedCidrs" };
    const { status, json } = await call("PUT", await createRestricted(), body);
    expect([status, json.errors]).toEqual([
      400,
      { update_mask: ["is not a field of this request"] },
    ]);
  });
});

const isChanged = { version: expect.any(String), modified_at: expect.any(String) };

describe("PATCH /applications/{id}", () => {
  it.each<[patch: object, expected: object]>([
    [{ name: "renamed" }, { name: "renamed" }],
    [{ permissions: ["token:read"] }, { permissions: ["token:read"] }],
    [{ permissions: null }, { permissions: [] }],
    [{ rules: [] }, { rules: [] }],
    [{ description: null }, { description: undefined }],
    [{ description: "" }, { description: undefined }],
    [{ external_id: null }, { external_id: undefined }],
    [{ session_quota: null }, { session_quota: undefined }],
    [{ session_quota: 8 }, { session_quota: 8 }],
    [{ expires_at: null }, { expires_at: undefined }],
    [
      { allowed_cidrs: null, allowed_origins: [] },
      { allowed_cidrs: [], allowed_origins: [] },
    ],
    [{ metadata: { tier: "silver" } }, { metadata: { team: "payments", tier: "silver" } }],
    [{ metadata: { tier: null, "a.b": "c" } }, { metadata: { team: "payments", "a.b": "c" } }],
    [{ metadata: null }, { metadata: {} }],
  ])("changes what %j contains and nothing else", async (patch, expected) => {
    for (const headers of [{}, mergePatch]) {
      const { path, shown } = await createFull();
      const { status, json } = await call("PATCH", path, patch, headers);
      const after = { ...shown, ...expected, ...isChanged, modified_by: expect.any(String) };
      expect([status, json]).toEqual([200, after]);
      expect(await get(path)).toEqual(json);
      expect(json.version).not.toBe(shown.version);
    }
  });

  it("changes nothing and keeps the version if nothing differs", async () => {
    const { path, shown } = await createFull();
    const { id, name, rules } = shown;
    const empty = [{}, null, { metadata: {} }, { id, type: "public" }];
    for (const body of [...empty, { metadata: { unknown: null } }, { name, rules }]) {
      const { status, json, headers } = await call("PATCH", path, body, mergePatch);
      expect([status, json]).toEqual([200, shown]);
      expect(headers.etag).toBe(`"${shown.version}"`);
    }
    expect(await get(path)).toEqual(shown);
  });

  it.each<[patch: object, field: string]>([
    [{ name: null }, "name"],
    [{ name: "" }, "name"],
    [{ permissions: null, rules: null }, "request"],
    [{ permissions: [], rules: [] }, "request"],
    [{ nam: "x" }, "nam"],
    [{ update_mask: "name" }, "update_mask"],
    [{ metadata: { a: 1 } }, 'metadata["a"]'],
    [{ metadata: { "a\nb": "c" } }, 'metadata["a\\nb"]'],
    [{ session_quota: 0 }, "session_quota"],
    [{ expires_at: "2000-01-01T00:00:00Z" }, "expires_at"],
    [{ permissions: ["application:delete"] }, "permissions[0]"],
    [{ id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a" }, "id"],
    [{ type: "private" }, "type"],
    [{ status: "disabled" }, "status"],
    [{ created_at: "2000-01-01T00:00:00Z" }, "created_at"],
    [{ created_by: null, tenant_id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a" }, "tenant_id"],
  ])("refuses %j and names the field", async (patch, field) => {
    const { path, shown } = await createFull();
    const { status, json } = await call("PATCH", path, patch);
    expect([status, Object.keys(json.errors)]).toEqual([400, [field]]);
    expect(await get(path)).toEqual(shown);
  });

  it("refuses metadata that would have more than 50 pairs", async () => {
    const { path } = await createFull();
    const pairs = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
    expect((await call("PATCH", path, { metadata: pairs(48) })).status).toBe(200);
    const { status, json } = await call("PATCH", path, { metadata: { more: "v" } });
    expect([status, json.errors]).toEqual([
      400,
      { metadata: ["must contain no more than 50 pairs"] },
    ]);
    const swap = { metadata: { more: "v", k0: null } };
    expect((await call("PATCH", path, swap)).status).toBe(200);
  });

  it("is refused with 415 for other types", async () => {
    const { path } = await createFull();
    for (const type of [
      "application/json-patch+json",
      "application/merge-patchXjson",
      "text/plain",
    ]) {
      const { status, json } = await call("PATCH", path, { name: "x" }, { "content-type": type });
      expect([status, json.code]).toEqual([415, "unsupported_media_type"]);
      expect(json.detail).toContain("application/merge-patch+json");
    }
    expect((await call("PUT", path, update, mergePatch)).status).toBe(415);
  });

  it("is refused with 412 if the version differs, also if it changes nothing", async () => {
    const { path, shown } = await createFull();
    const current = `"${shown.version}"`;
    for (const patch of [{ name: "x" }, {}]) {
      expect((await call("PATCH", path, patch, { "if-match": '"1"' })).status).toBe(412);
      expect((await call("PATCH", path, { ...patch, version: "1" })).status).toBe(412);
      const both = await call("PATCH", path, { ...patch, version: "1" }, { "if-match": current });
      expect(both.status).toBe(412);
    }
    expect(await get(path)).toEqual(shown);
    const both = { version: shown.version, name: "x" };
    expect((await call("PATCH", path, both, { "if-match": current })).status).toBe(200);
  });

  it("is refused with 404 for an unknown application, also if it changes nothing", async () => {
    const path = "/applications/0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a";
    expect((await call("PATCH", path, {})).status).toBe(404);
    expect((await call("PATCH", path, { name: "x" })).status).toBe(404);
  });

  it("is listed with the allowed methods of the path", async () => {
    const { path } = await createFull();
    const { status, headers } = await call("POST", path, {});
    expect([status, headers.allow]).toEqual([405, expect.stringContaining("PATCH")]);
  });
});

describe.each(["PUT", "PATCH"])("a %s of what GET returned", (method) => {
  it("changes nothing, not even the version, which it must match", async () => {
    const { path, shown } = await createFull();
    const { status, json } = await call(method, path, shown);
    expect([status, json]).toEqual([200, shown]);
    expect(await get(path)).toEqual(shown);
    expect((await call(method, path, { ...shown, name: "renamed" })).status).toBe(200);
    expect((await call(method, path, shown)).status).toBe(412);
  });

  it("ignores when it was modified and used, and the ids of rules", async () => {
    const { path, shown } = await createFull();
    const { status } = await call(method, path, {
      ...shown,
      modified_by: shown.id,
      modified_at: "2000-01-01T00:00:00Z",
      last_used_at: "2000-01-01T00:00:00Z",
      rules: shown.rules.map((rule: object) => ({ ...rule, id: "mine" })),
    });
    expect(status).toBe(200);
  });

  it("accepts ids in upper case and times with another offset", async () => {
    const { path, shown } = await createFull();
    const at = new Date(Date.parse(shown.created_at) + 3_600_000).toISOString();
    const { status } = await call(method, path, {
      ...shown,
      id: shown.id.toUpperCase(),
      created_at: at.replace("Z", "+01:00"),
    });
    expect(status).toBe(200);
  });

  it("refuses each field that cannot change if it differs", async () => {
    const { path, shown } = await createFull();
    const other = {
      id: shown.tenant_id,
      tenant_id: shown.id,
      type: "private",
      status: "disabled",
      created_by: shown.id,
      created_at: "2000-01-01T00:00:00Z",
    };
    for (const [field, value] of Object.entries(other)) {
      const { status, json } = await call(method, path, { ...shown, [field]: value });
      expect([status, Object.keys(json.errors)]).toEqual([400, [field]]);
    }
    expect(await get(path)).toEqual(shown);
  });
});

describe("UpdateApplication as JSON of Connect", () => {
  const path = "/latchkey.v1.ApplicationService/UpdateApplication";

  it("reads an update mask in its canonical form", async () => {
    const { shown } = await createFull();
    const { id } = shown;
    const renamed = { name: "x", metadata: { team: "checkout" } };
    const masked = { id, ...renamed, updateMask: "name,allowedCidrs,metadata.team" };
    const { status, json } = await call("POST", path, masked);
    expect([status, json.name, json.allowedCidrs]).toEqual([200, "x", []]);
    expect(json.metadata).toEqual({ team: "checkout", tier: "gold" });
    expect(json.description).toBe(shown.description);
    expect((await call("POST", path, { id, updateMask: "" })).json.version).toBe(json.version);
    const everything = { id, name: "y", permissions: ["token:use"], updateMask: "*" };
    expect((await call("POST", path, everything)).json).toMatchObject({ rules: [], metadata: {} });
  });

  it("refuses an unknown path and names a near one", async () => {
    const { shown } = await createFull();
    const { status, json } = await call("POST", path, { id: shown.id, updateMask: "permission" });
    expect([status, json.message]).toEqual([
      400,
      'update_mask: cannot name "permission": did you mean permissions?',
    ]);
  });
});
