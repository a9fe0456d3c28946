import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { version } from "../../../src/config/settings.js";
import { expectProblem, send } from "../../support/http/http.js";
import { callRaw } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";

describe("web pages", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { KEY_HEADER: "X-Other-Key" } });
  });

  afterAll(() => server.close());

  /** Returns the scripts, styles and images that a page references. */
  async function assetsOf(path: string): Promise<string[]> {
    const { body } = await send(server, path);
    const matches = body.matchAll(/<(?:script|link|img)\b[^>]* (?:src|href)="([^"]+)"/g);
    return [...matches].map(([, asset = ""]) => asset);
  }

  describe.each(["console", "docs", "docs/guides/deploy", "docs/api"])("/%s", (name) => {
    it("is served with and without a trailing slash", async () => {
      const responses = await Promise.all(
        [`/${name}`, `/${name}/`].map((path) => send(server, path)),
      );
      expect(responses.map(({ status }) => status)).toEqual([200, 200]);
      expect(responses[1]?.body).toBe(responses[0]?.body);
    });

    it("has a policy that allows only its own origin and no framing", async () => {
      const { headers } = await send(server, `/${name}`);
      const policy = new Map(
        headers["content-security-policy"]
          ?.split("; ")
          .map((rule) => rule.split(/ (.*)/, 2) as [string, string]),
      );
      expect(policy.get("default-src")).toBe("'none'");
      expect(policy.get("script-src")).toBe("'self'");
      expect(policy.get("connect-src")).toBe("'self'");
      expect(policy.get("font-src")).toBe("'self'");
      expect(policy.get("frame-ancestors")).toBe("'none'");
      expect(policy.get("base-uri")).toBe("'none'");
      expect(headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": name === "console" ? "no-store" : "no-cache",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
      });
    });

    it("has no inline scripts or styles and references only local assets", async () => {
      const { body } = await send(server, `/${name}`);
      expect(body).not.toMatch(/<script(?![^>]* src=)|<style| on[a-z]+=|style=/);
      const assets = await assetsOf(`/${name}`);
      expect(assets.length).toBeGreaterThan(1);
      expect(assets.filter((asset) => !asset.startsWith("/assets/"))).toEqual([]);
    });

    it("references existing assets that are cacheable forever and compressed on request", async () => {
      for (const asset of await assetsOf(`/${name}`)) {
        const plain = await fetch(server.url + asset, {
          headers: { "accept-encoding": "identity" },
        });
        const compressed = await callRaw(server, asset, {
          headers: {
            ":method": "GET",
            "content-type": "application/json",
            "accept-encoding": "gzip, br",
          },
        });
        expect(plain.status).toBe(200);
        expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        expect(plain.headers.get("content-encoding")).toBeNull();
        expect(compressed.headers).toMatchObject({
          "content-encoding": "br",
          "content-type": plain.headers.get("content-type"),
          vary: "accept-encoding",
        });
        expect(brotliDecompressSync(compressed.body).toString()).toBe(await plain.text());
      }
    });

    it.each([
      ["br", brotliDecompressSync],
      ["gzip", gunzipSync],
    ])("is compressed on request with %s, with the same content", async (encoding, decompress) => {
      const plain = await send(server, `/${name}`);
      const compressed = await callRaw(server, `/${name}`, {
        headers: { ":method": "GET", "content-type": "text/plain", "accept-encoding": encoding },
      });
      expect(compressed.headers["content-encoding"]).toBe(encoding);
      expect(decompress(compressed.body).toString()).toBe(plain.body);
    });

    it("returns 405 for other methods", async () => {
      const { status, headers } = await send(server, `/${name}`, { method: "POST" });
      expect(status).toBe(405);
      expect(headers.allow).toBe("GET, HEAD");
    });

    it("responds to HEAD without a body", async () => {
      const { status, headers, body } = await send(server, `/${name}`, { method: "HEAD" });
      expect(status).toBe(200);
      expect(Number(headers["content-length"])).toBeGreaterThan(100);
      expect(body).toBe("");
    });
  });

  it.each(["/docs", "/docs/api"])("returns 304 for %s if the browser has it", async (path) => {
    const { headers } = await send(server, path);
    const { etag = "" } = headers;
    expect(etag).toMatch(/^W\/"[\w-]{43}"$/);
    for (const known of [etag, `"other", ${etag}`, etag.slice(2), "*"]) {
      const kept = await send(server, path, { headers: { "if-none-match": known } });
      expect([kept.status, kept.body]).toEqual([304, ""]);
      expect(kept.headers["content-length"]).toBeUndefined();
      expect(kept.headers).toMatchObject({
        etag,
        "cache-control": "no-cache",
        vary: "accept-encoding",
        "content-security-policy": headers["content-security-policy"],
      });
    }
    for (const known of ['W/"other"', `${etag.slice(0, -2)}"`]) {
      const changed = await send(server, path, { headers: { "if-none-match": known } });
      expect(changed.status).toBe(200);
    }
    const compressed = await callRaw(server, path, {
      headers: {
        ":method": "GET",
        "content-type": "text/plain",
        "accept-encoding": "gzip",
        "if-none-match": etag,
      },
    });
    expect([compressed.status, compressed.headers.etag]).toEqual([304, etag]);
    expect(compressed.headers["content-length"]).toBeUndefined();
  });

  it.each(["/console", "/docs", "/docs/api", "/docs/guides/deploy"])(
    "inserts the configured key header into %s",
    async (path) => {
      const { body } = await send(server, path);
      expect(body).toContain('<meta name="key-header" content="X-Other-Key">');
    },
  );

  it("serves the console for every path below it", async () => {
    const home = await send(server, "/console");
    const { status, body } = await send(server, "/console/applications/new?type=public");
    expect(status).toBe(200);
    expect(body).toBe(home.body);
  });

  it.each([
    "/docs/guides/nothing",
    "/docs/nothing",
    "/docs/404",
    "/docs/../console/index",
    "/docs//",
  ])("returns 404 and a page with navigation for %s", async (path) => {
    const { status, headers, body } = await send(server, path);
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(body).toContain("Page not found");
    expect(body).toContain('href="/docs/guides/deploy"');
  });

  it.each([
    "/assets/",
    "/assets/nothing.js",
    "/assets/../console/index.html",
    "/assets/../../../package.json",
    "/assets/..%2f..%2f..%2fpackage.json",
    "/assets/%2e%2e/%2e%2e/package.json",
    "/assets/console/index.html",
    "/consoles",
  ])("returns 404 for any other file: %s", async (path) => {
    const { status, headers } = await send(server, path);
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("application/problem+json");
  });

  it.each([
    ["gzip;q=0", undefined],
    ["gzip;q=0.0, br", "br"],
    ["gzip;q=0.5", "gzip"],
    ["deflate, gzip", "gzip"],
    ["gzip, BR ; q=0.1", "br"],
    ["br;q=0, gzip", "gzip"],
    ["xgzip, brr", undefined],
    ["", undefined],
  ])("respects Accept-Encoding: %s", async (accepted, encoding) => {
    const [asset = ""] = await assetsOf("/console");
    const { headers } = await send(server, asset, { headers: { "accept-encoding": accepted } });
    expect(headers["content-encoding"]).toBe(encoding);
  });

  it("redirects a browser from / to the console, and lists the paths for programs", async () => {
    const get = (accept: string) => send(server, "/", { headers: { accept } });
    for (const accept of ["text/html,*/*", "TEXT/HTML; q=0.9"]) {
      const browser = await get(accept);
      expect([browser.status, browser.headers.location]).toEqual([302, "/console"]);
    }
    expect((await get("text/html;q=0, application/json")).status).toBe(200);
    const program = await get("*/*");
    expect(program.status).toBe(200);
    expect(program.headers).toMatchObject({ "content-type": "application/json", vary: "accept" });
    expect(JSON.parse(program.body)).toEqual({
      name: "latchkey",
      version,
      console: "/console",
      docs: "/docs",
      openapi: "/openapi.json",
    });
    const { status } = await send(server, "/", { method: "POST" });
    expect(status).toBe(405);
  });
});

describe("CONSOLE=off", () => {
  it("disables the console, and keeps the documentation, to which errors link", async () => {
    const server = await startServer("lmdb", { environment: { CONSOLE: "off" } });
    try {
      const headers = { accept: "text/html" };
      const paths = ["/console", "/console/me", "/docs", "/docs/api"];
      const responses = await Promise.all(paths.map((path) => send(server, path, { headers })));
      expect(responses.map(({ status }) => status)).toEqual([404, 404, 200, 200]);
      expect(responses.filter(({ body }) => body.includes('href="/console"'))).toEqual([]);
      const { type } = expectProblem(await send(server, "/applications"), 401, "unauthenticated");
      expect((await send(server, type, { headers })).status).toBe(200);
      expect((await send(server, "/", { headers })).headers.location).toBe("/docs");
      const { body } = await send(server, "/");
      const expected = { name: "latchkey", version, docs: "/docs", openapi: "/openapi.json" };
      expect(JSON.parse(body)).toEqual(expected);
    } finally {
      await server.close();
    }
  });
});
