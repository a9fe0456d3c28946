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

async function call(method: string, path: string, body: object) {
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  const response = await send(server, path, { method, headers, body: JSON.stringify(body) });
  return { status: response.status, json: JSON.parse(response.body) };
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
