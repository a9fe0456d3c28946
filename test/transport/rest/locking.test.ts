import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const update = { name: "renamed", permissions: ["token:read"] };
let server: TestServer;
let key: string;

beforeAll(async () => {
  server = await startServer();
  ({ key } = await server.createTenant());
});

afterAll(() => server.close());

interface CallOptions {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: object;
}

/** Sends an authenticated request and parses the response body. */
async function call(method: string, path: string, { headers = {}, body }: CallOptions = {}) {
  const response = await send(server, path, {
    method,
    headers: {
      "svc-api-key": key,
      ...(body && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { ...response, json: response.body === "" ? undefined : JSON.parse(response.body) };
}

const create = () =>
  call("POST", "/applications", { body: { ...update, name: "one", type: "private" } });

const read = (id: string) => call("GET", `/applications/${id}`);

describe("a response with an application", () => {
  it("has its version as the ETag, for every method", async () => {
    const created = await create();
    const path = `/applications/${created.json.id}`;
    const responses = [
      created,
      await call("GET", path),
      await call("GET", "/applications/key"),
      await call("PUT", path, { body: update }),
      await call("POST", `${path}/regenerate`),
      await call("POST", `${path}/disable`),
      await call("POST", `${path}/enable`),
    ];
    for (const { status, headers, json } of responses) {
      expect(status).toBeLessThan(300);
      expect(json.version).toMatch(/^[0-9]+$/);
      expect(headers.etag).toBe(`"${json.version}"`);
    }
    expect(new Set(responses.map(({ headers }) => headers.etag)).size).toBeGreaterThan(4);
  });

  it("has the ETag when the response is cached", async () => {
    const { json } = await create();
    for (let attempt = 0; attempt < 20; attempt++) {
      expect((await read(json.id)).headers.etag).toBe(`"${json.version}"`);
    }
  });

  it("has the ETag over HTTP/2 and for HEAD", async () => {
    const { json } = await create();
    const path = `/applications/${json.id}`;
    expect((await call("HEAD", path)).headers.etag).toBe(`"${json.version}"`);
    const { headers } = await callOverHttp2({ ":path": path });
    expect(headers.etag).toBe(`"${json.version}"`);
  });

  it("has no ETag for a list, an empty response or an error", async () => {
    const { json } = await create();
    const path = `/applications/${json.id}`;
    for (const response of [
      await call("GET", "/applications"),
      await call("GET", `${path}/keys`),
      await call("PUT", path, { body: {} }),
      await call("DELETE", path),
      await call("GET", path),
    ]) {
      expect(response.headers).not.toHaveProperty("etag");
    }
  });
});

describe("If-Match", () => {
  it("accepts the ETag of a response unchanged", async () => {
    const { json, headers } = await create();
    const path = `/applications/${json.id}`;
    const options = { headers: { "If-Match": headers.etag }, body: update };
    const first = await call("PUT", path, options);
    expect([first.status, first.json.name]).toEqual([200, "renamed"]);
    const second = await call("PUT", path, options);
    expect([second.status, second.json.code]).toEqual([412, "version_mismatch"]);
    expect(second.json.detail).toContain(`current version is ${first.json.version}`);
  });

  it("matches any existing application with *, and returns 404 for a missing one", async () => {
    const { json } = await create();
    const options = { headers: { "If-Match": "*" } };
    expect((await call("POST", `/applications/${json.id}/disable`, options)).status).toBe(200);
    expect((await call("DELETE", `/applications/${json.id}`, options)).status).toBe(204);
    expect((await call("DELETE", `/applications/${json.id}`, options)).status).toBe(404);
  });

  it.each<[what: string, tag: string | string[]]>([
    ["a weak tag", 'W/"1"'],
    ["several tags", '"1", "2"'],
    ["several headers", ['"1"', '"2"']],
    ["the same header twice", ['"1"', '"1"']],
    ["a star in a list of tags", '*, "1"'],
    ["no quotes", "1"],
    ["one quote", '"1'],
    ["empty quotes", '""'],
    ["a space in the tag", '"1 2"'],
    ["an empty header", ""],
    ["a non-ASCII character", '"\u00fc"'],
  ])("refuses %s and explains what to send", async (_what, tag) => {
    const { json } = await create();
    const path = `/applications/${json.id}`;
    const headers = { "If-Match": tag };
    for (const response of [
      await call("PUT", path, { headers, body: update }),
      await call("DELETE", path, { headers }),
      await call("POST", `${path}/regenerate`, { headers }),
    ]) {
      expect([response.status, response.json.code]).toEqual([400, "invalid_request"]);
      expect(response.json.errors["If-Match"]).toEqual([expect.stringContaining("quotes")]);
      expect(response.json.detail).toContain("If-Match: must be one entity tag");
    }
    expect((await read(json.id)).json).toMatchObject({ name: "one", version: json.version });
  });

  it("refuses a tag longer than any version", async () => {
    const { json } = await create();
    const headers = { "If-Match": `"${"1".repeat(101)}"` };
    const response = await call("DELETE", `/applications/${json.id}`, { headers });
    expect([response.status, response.json.code]).toEqual([400, "invalid_request"]);
  });

  it("works over HTTP/2", async () => {
    const { json } = await create();
    const path = `/applications/${json.id}`;
    const deleteIfMatch = (tag: string) =>
      callOverHttp2({ ":method": "DELETE", ":path": path, "if-match": tag });
    expect((await deleteIfMatch("1")).headers[":status"]).toBe(400);
    expect((await deleteIfMatch('"no-version"')).headers[":status"]).toBe(412);
    expect((await deleteIfMatch(`"${json.version}"`)).headers[":status"]).toBe(204);
  });

  it("is a header and not a field of the body or the query", async () => {
    const { json } = await create();
    const path = `/applications/${json.id}`;
    const if_match = json.version;
    for (const response of [
      await call("PUT", path, { body: { ...update, if_match } }),
      await call("POST", `${path}/regenerate`, { body: { if_match } }),
      await call("PUT", `${path}?if_match=${if_match}`, { body: update }),
      await call("DELETE", `${path}?if_match=${if_match}`),
    ]) {
      expect([response.status, response.json.code]).toEqual([400, "invalid_request"]);
      expect(Object.keys(response.json.errors)).toEqual(["if_match"]);
    }
    expect((await read(json.id)).json.version).toBe(json.version);
  });

  it("is ignored by methods that do not support it", async () => {
    const headers = { "If-Match": "nonsense" };
    expect((await call("GET", "/applications/key", { headers })).status).toBe(200);
    expect((await call("GET", "/applications", { headers })).status).toBe(200);
  });
});

/** Sends a request over HTTP/2. Returns the response headers. */
async function callOverHttp2(
  headers: OutgoingHttpHeaders,
): Promise<{ readonly headers: IncomingHttpHeaders }> {
  const session = connect(server.url);
  try {
    const stream = session.request({ "svc-api-key": key, ...headers });
    const responseHeaders = new Promise<IncomingHttpHeaders>((resolve, reject) => {
      stream.on("response", resolve);
      stream.on("error", reject);
    });
    await text(stream);
    return { headers: await responseHeaders };
  } finally {
    session.close();
  }
}
