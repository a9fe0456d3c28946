import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import {
  exchangeRaw,
  expectProblem,
  type HttpResponse,
  parseResponses,
  send,
} from "../../support/http/http.js";

const target = useBadInputTarget();
const close = "host: a\r\nconnection: close\r\n";

/** Sends a raw request line and headers with a key. */
function sendRequest(line: string, headers = close, body = "") {
  return exchangeRaw(target, `${line}\r\nsvc-api-key: ${target.root.key}\r\n${headers}\r\n${body}`);
}

describe("a path", () => {
  it.each([
    "/application",
    "/applications/a/b",
    "/applications/a/regenerate/b",
    "/Applications",
    "/applications;a=b",
    "/applications%2Fkey",
    "/applications/%zz",
    "/applications/%",
    "/applications/%E0%A4%A",
    "/applications/%C3%28",
    "//applications",
    "//",
    "/applications//",
    "/applications//key",
    "/applications/../healthz",
    "/./applications",
    "/healthz/../applications",
    "/%61pplication",
    "/sessions/authorize/x",
    "/favicon.ico",
    "/__proto__",
    "/constructor",
    "*",
    "/latchkey.v1.ApplicationService",
    "/latchkey.v1.ApplicationService/Nothing",
    "/grpc.health.v1.Health/constructor",
  ])("returns 404 if it is unknown: %s", async (path) => {
    expectProblem(await sendRequest(`GET ${path} HTTP/1.1`), 404, "path_not_found");
  });

  it("returns 404 if it is unknown, without a key", async () => {
    expectProblem(await send(target, "/nothing"), 404, "path_not_found");
  });

  it("matches with percent-encoding and with a trailing slash", async () => {
    for (const path of ["/%61pplications/k%65y", "/applications/key/", "/healthz/", "/readyz/"]) {
      expect((await sendRequest(`GET ${path} HTTP/1.1`)).status).toBe(200);
    }
  });
});

describe("an HTTP method", () => {
  const allowed: [path: string, allow: string][] = [
    ["/applications", "POST, GET, HEAD"],
    ["/applications/key", "GET, HEAD"],
    ["/applications/0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a", "GET, HEAD, PUT, PATCH, DELETE"],
    ["/applications/0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a/regenerate", "POST"],
    ["/sessions", "POST, GET, HEAD"],
    ["/sessions/0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a", "GET, HEAD, DELETE"],
    ["/sessions/authorize", "POST"],
    ["/healthz", "GET, HEAD"],
    ["/readyz", "GET, HEAD"],
    ["/openapi.json", "GET, HEAD"],
    ["/latchkey.v1.ApplicationService/CreateApplication", "POST"],
    ["/latchkey.v1.ApplicationService/GetApplication", "POST, GET"],
    ["/grpc.health.v1.Health/Watch", "POST"],
  ];

  it.each(allowed)("returns 405 if %s does not allow it, with Allow: %s", async (path, allow) => {
    const allowedMethods = allow.split(", ");
    const methods = ["PATCH", "TRACE", "OPTIONS", "PROPFIND", "POST", "PUT", "DELETE", "GET"];
    for (const method of methods.filter((it) => !allowedMethods.includes(it))) {
      const response = await sendRequest(`${method} ${path} HTTP/1.1`);
      expectProblem(response, 405, "method_not_allowed");
      expect(response.headers.allow?.split(", ").sort()).toEqual(allowedMethods.sort());
    }
  });

  it("is refused as malformed if it is unknown", async () => {
    for (const method of ["FETCH", "get", "GET\t", "GÉT"]) {
      expectProblem(await sendRequest(`${method} /applications HTTP/1.1`), 400, "invalid_request");
    }
  });

  it("returns the headers of GET without a body if it is HEAD", async () => {
    const headers = { "svc-api-key": target.root.key };
    for (const path of ["/applications/key", "/healthz", "/openapi.json"]) {
      const getResponse = await send(target, path, { headers });
      const response = await send(target, path, { method: "HEAD", headers });
      expect(response).toMatchObject({ status: 200, body: "" });
      for (const name of ["content-type", "content-length"]) {
        expect(response.headers[name]).toBe(getResponse.headers[name]);
      }
    }
    const refused = await send(target, "/sessions/authorize", { method: "HEAD", headers });
    expect(refused).toMatchObject({ status: 405, headers: { allow: "POST" }, body: "" });
  });
});

describe("HTTP parsing", () => {
  it.each<[what: string, bytes: string | Uint8Array]>([
    ["text that is not HTTP", "hello\r\n\r\n"],
    ["binary data", Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10])],
    ["a TLS ClientHello", Buffer.from("160301020001", "hex")],
    ["a wrong HTTP/2 preface", "PRX * HTTP/2.0\r\n\r\n"],
    ["an unknown HTTP version", "GET / HTTP/9.9\r\n\r\n"],
    ["a space in the path", "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a header without a colon", "GET / HTTP/1.1\r\nhost\r\n\r\n"],
    ["a header name with a space", "GET / HTTP/1.1\r\nho st: a\r\n\r\n"],
    ["a folded header", "GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n"],
    ["a NUL in a header", "GET / HTTP/1.1\r\nhost: a\u0000b\r\n\r\n"],
    ["a negative length", "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n"],
    [
      "a length that is not a number",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: ten\r\n\r\n",
    ],
    [
      "two lengths",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ],
    [
      "a length and chunked encoding",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "chunked before another encoding",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
    ],
  ])("refuses %s with a problem body and closes the connection", async (_what, bytes) => {
    expectProblem(await exchangeRaw(target, bytes), 400, "invalid_request");
  });

  it("refuses a malformed chunk with a problem body", async () => {
    const response = await sendRequest(
      "POST /applications HTTP/1.1",
      "host: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n",
      "zz\r\n{}\r\n",
    );
    expectProblem(response, 400, "invalid_request");
  });

  it("does not interrupt a response in progress when malformed data follows", async () => {
    const watchRequest = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
    const socket = connect(target.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
      if (text.includes("SERVING")) {
        socket.write("nonsense\r\n\r\n");
      }
    });
    socket.write(
      "POST /grpc.health.v1.Health/Watch HTTP/1.1\r\nhost: a\r\n" +
        "content-type: application/connect+json\r\ncontent-length: 7\r\n\r\n",
    );
    socket.write(watchRequest);
    await once(socket, "close");
    expect(text).toContain("SERVING");
    expect(text).not.toContain("HTTP/1.1 400");
  });

  it("ignores an unknown Expect header", async () => {
    const headers = `${close}expect: unknown\r\n`;
    expect((await sendRequest("GET /applications/key HTTP/1.1", headers)).status).toBe(200);
  });

  it("ignores an Upgrade header", async () => {
    const headers = "host: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n";
    expect((await sendRequest("GET /applications/key HTTP/1.1", headers)).status).toBe(200);
  });
});

describe("HTTP parsing limits", () => {
  it.each<[what: string, line: string, headers: string]>([
    ["a long header", "GET /healthz HTTP/1.1", `${close}x: ${"a".repeat(20_000)}\r\n`],
    ["a long header name", "GET /healthz HTTP/1.1", `${close}${"a".repeat(20_000)}: x\r\n`],
    ["many headers", "GET /healthz HTTP/1.1", `${close}${"a: bbbbbbb\r\n".repeat(4_000)}`],
  ])("refuses headers over the limit with 431: %s", async (_what, line, headers) => {
    expectProblem(await sendRequest(line, headers), 431, "headers_too_large");
  });

  it.each([8_193, 10_000, 16_384, 20_000, 70_000, 200_000])(
    "refuses a URL of %d bytes with 414",
    async (size) => {
      for (const start of ["/", "/applications?id="]) {
        const url = start.padEnd(size, "a");
        expectProblem(await sendRequest(`GET ${url} HTTP/1.1`), 414, "url_too_long");
      }
    },
  );

  it.each([
    ["a long header after it", [`GET /${"a".repeat(10_000)} HTTP/1.1\r\nx: ${"b".repeat(10_000)}`]],
    ["several packets", [`GET /${"a".repeat(10_000)}`, "b".repeat(5_000), "c".repeat(5_000)]],
    [
      "a request before it",
      ["GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", `GET /${"a".repeat(20_000)}`],
    ],
  ])("refuses a long URL with 414, with %s", async (_what, packets) => {
    const socket = connect({ port: target.port, host: "127.0.0.1", noDelay: true });
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    const closed = once(socket, "close");
    for (const packet of packets) {
      socket.write(packet);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    socket.write(" HTTP/1.1\r\n\r\n");
    await closed;
    expectProblem(parseResponses(text).at(-1) as HttpResponse, 414, "url_too_long");
  });

  it("allows a path of 8 kB, which returns 404", async () => {
    const response = await sendRequest(`GET /${"a".repeat(8_000)} HTTP/1.1`);
    expectProblem(response, 404, "path_not_found");
  });
});

describe("the key header", () => {
  it.each(["SVC-API-KEY", "svc-api-key", "Svc-Api-Key", "sVC-aPI-kEY"])(
    "is case-insensitive: %s",
    async (name) => {
      const { status } = await send(target, "/applications/key", {
        headers: { [name]: target.root.key },
      });
      expect(status).toBe(200);
    },
  );

  it.each<[what: string, headers: (key: string) => string]>([
    ["it is repeated", (key) => `svc-api-key: ${key}\r\nsvc-api-key: ${key}\r\n`],
    ["it contains two keys", (key) => `svc-api-key: ${key}, ${key}\r\n`],
    [
      "it is repeated and empty the second time",
      (key) => `svc-api-key: ${key}\r\nsvc-api-key:\r\n`,
    ],
    ["the key is in quotes", (key) => `svc-api-key: "${key}"\r\n`],
    ["the key is a bearer token", (key) => `svc-api-key: Bearer ${key}\r\n`],
    ["the key is in upper case", (key) => `svc-api-key: ${key.toUpperCase()}\r\n`],
    ["the key is in Authorization", (key) => `authorization: Bearer ${key}\r\n`],
    ["the key is in X-API-Key", (key) => `x-api-key: ${key}\r\n`],
    ["the key is in a cookie", (key) => `cookie: svc-api-key=${key}\r\n`],
    ["the name has underscores", (key) => `svc_api_key: ${key}\r\n`],
    ["the key is an object", () => 'svc-api-key: {"$gt":""}\r\n'],
    ["the key is not ASCII", () => "svc-api-key: ключ\r\n"],
    ["the key is long", () => `svc-api-key: ${"a".repeat(10_000)}\r\n`],
  ])("is refused if %s", async (_what, headers) => {
    const bytes = `GET /applications/key HTTP/1.1\r\n${close}${headers(target.root.key)}\r\n`;
    const response = await exchangeRaw(target, bytes);
    expectProblem(response, 401, "unauthenticated");
    expect(response.body).not.toContain(target.root.key);
  });

  it("may have spaces around the key", async () => {
    const bytes = `GET /applications/key HTTP/1.1\r\n${close}svc-api-key: \t ${target.root.key} \r\n\r\n`;
    expect((await exchangeRaw(target, bytes)).status).toBe(200);
  });

  it("cannot be sent in the query", async () => {
    const response = await send(target, `/applications/key?svc-api-key=${target.root.key}`);
    expectProblem(response, 401, "unauthenticated");
  });
});

describe("the Host header", () => {
  const connectPath = "/latchkey.v1.ApplicationService/GetApplicationByKey";
  const json = "connection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n";

  it("is required for HTTP/1.1 and optional for HTTP/1.0", async () => {
    for (const path of ["/healthz", "/applications/key", "/readyz"]) {
      const refused = await sendRequest(`GET ${path} HTTP/1.1`, "connection: close\r\n");
      expect(expectProblem(refused, 400, "invalid_request").errors).toHaveProperty("host");
      expect((await sendRequest(`GET ${path} HTTP/1.0`, "")).status).toBe(200);
    }
  });

  it.each(["1.1", "1.0"])("must not be repeated over HTTP/%s", async (version) => {
    for (const hosts of ["host: a\r\nhost: a\r\n", "Host: a\r\nx: y\r\nHOST: b\r\n"]) {
      for (const path of ["/healthz", "/applications/key"]) {
        const response = await sendRequest(
          `GET ${path} HTTP/${version}`,
          `${hosts}connection: close\r\n`,
        );
        expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("host");
      }
      const rpc = await sendRequest(`POST ${connectPath} HTTP/${version}`, `${hosts}${json}`, "{}");
      expect(rpc.status).toBe(400);
    }
  });

  it("is required for Connect as for REST", async () => {
    const response = await sendRequest(`POST ${connectPath} HTTP/1.1`, json, "{}");
    expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("host");
    expect((await sendRequest(`POST ${connectPath} HTTP/1.0`, json, "{}")).status).toBe(200);
  });

  it.each(["", "a b", "[::1", "a:99999999", "a<b>", "%", "🗝", "a/b?c#d"])(
    "causes no server error if it is %j",
    async (host) => {
      const rest = await sendRequest(
        "GET /applications/key HTTP/1.1",
        `connection: close\r\nhost: ${host}\r\n`,
      );
      expect(rest.status).toBe(200);
      const connect = await sendRequest(
        `POST ${connectPath} HTTP/1.1`,
        `${json}host: ${host}\r\n`,
        "{}",
      );
      expect([200, 400]).toContain(connect.status);
    },
  );
});
