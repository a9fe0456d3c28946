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

/** Sends a raw request line and headers. */
function ask(line: string, headers = close, body = "") {
  return exchangeRaw(target, `${line}\r\nsvc-api-key: ${target.root.key}\r\n${headers}\r\n${body}`);
}

describe("an unknown path", () => {
  it.each([
    "/",
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
  ])("returns 404: %s", async (path) => {
    expectProblem(await ask(`GET ${path} HTTP/1.1`), 404, "path_not_found");
  });

  it("returns 404 before the key is checked", async () => {
    expectProblem(await send(target, "/nothing"), 404, "path_not_found");
  });

  it("a path matches with percent-encoding and with a trailing slash", async () => {
    for (const path of ["/%61pplications/k%65y", "/applications/key/", "/healthz/", "/readyz/"]) {
      expect((await ask(`GET ${path} HTTP/1.1`)).status).toBe(200);
    }
  });
});

describe("a method that a path does not allow", () => {
  const allowed: [path: string, allow: string][] = [
    ["/applications", "POST, GET, HEAD"],
    ["/applications/key", "GET, HEAD"],
    ["/applications/0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a", "GET, HEAD, PUT, DELETE"],
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

  it.each(allowed)("%s returns 405 with Allow: %s", async (path, allow) => {
    const known = allow.split(", ");
    const methods = ["PATCH", "TRACE", "OPTIONS", "PROPFIND", "POST", "PUT", "DELETE", "GET"];
    for (const method of methods.filter((it) => !known.includes(it))) {
      const response = await ask(`${method} ${path} HTTP/1.1`);
      expectProblem(response, 405, "method_not_allowed");
      expect(response.headers.allow?.split(", ").sort()).toEqual(known.sort());
    }
  });

  it("an unknown HTTP method is malformed", async () => {
    for (const method of ["FETCH", "get", "GET\t", "GÉT"]) {
      expectProblem(await ask(`${method} /applications HTTP/1.1`), 400, "invalid_request");
    }
  });

  it("HEAD returns the headers of GET without a body", async () => {
    const headers = { "svc-api-key": target.root.key };
    for (const path of ["/applications/key", "/healthz", "/openapi.json"]) {
      const got = await send(target, path, { headers });
      const response = await send(target, path, { method: "HEAD", headers });
      expect(response).toMatchObject({ status: 200, body: "" });
      for (const name of ["content-type", "content-length"]) {
        expect(response.headers[name]).toBe(got.headers[name]);
      }
    }
    const refused = await send(target, "/sessions/authorize", { method: "HEAD", headers });
    expect(refused).toMatchObject({ status: 405, headers: { allow: "POST" }, body: "" });
  });
});

describe("malformed HTTP", () => {
  it.each<[what: string, bytes: string | Uint8Array]>([
    ["nonsense", "hello\r\n\r\n"],
    ["bytes", Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10])],
    ["a TLS greeting", Buffer.from("160301020001", "hex")],
    ["half of the preface of HTTP/2", "PRX * HTTP/2.0\r\n\r\n"],
    ["a version that there is not", "GET / HTTP/9.9\r\n\r\n"],
    ["a space in the path", "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a header without a colon", "GET / HTTP/1.1\r\nhost\r\n\r\n"],
    ["a header name with a space", "GET / HTTP/1.1\r\nho st: a\r\n\r\n"],
    ["a folded header", "GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n"],
    ["a NUL in a header", "GET / HTTP/1.1\r\nhost: a\u0000b\r\n\r\n"],
    ["a negative length", "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n"],
    ["a length in words", "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: ten\r\n\r\n"],
    [
      "two lengths",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ],
    [
      "a length and chunks",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "chunks that are not the last encoding",
      "POST /sessions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
    ],
  ])("gets a problem body and the connection closes: %s", async (_what, bytes) => {
    expectProblem(await exchangeRaw(target, bytes), 400, "invalid_request");
  });

  it("gets a problem body in the middle of a request body", async () => {
    const response = await ask(
      "POST /applications HTTP/1.1",
      "host: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n",
      "zz\r\n{}\r\n",
    );
    expectProblem(response, 400, "invalid_request");
  });

  it("does not interrupt a response in progress", async () => {
    const question = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
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
    socket.write(question);
    await once(socket, "close");
    expect(text).toContain("SERVING");
    expect(text).not.toContain("HTTP/1.1 400");
  });

  it("an unknown Expect header is ignored", async () => {
    const headers = `${close}expect: miracles\r\n`;
    expect((await ask("GET /applications/key HTTP/1.1", headers)).status).toBe(200);
  });

  it("an Upgrade header is ignored", async () => {
    const headers = "host: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n";
    expect((await ask("GET /applications/key HTTP/1.1", headers)).status).toBe(200);
  });
});

describe("size limits", () => {
  it.each<[what: string, line: string, headers: string]>([
    ["a long header", "GET /healthz HTTP/1.1", `${close}x: ${"a".repeat(20_000)}\r\n`],
    ["a long header name", "GET /healthz HTTP/1.1", `${close}${"a".repeat(20_000)}: x\r\n`],
    ["many headers", "GET /healthz HTTP/1.1", `${close}${"a: bbbbbbb\r\n".repeat(4_000)}`],
  ])("refuse large headers with 431: %s", async (_what, line, headers) => {
    expectProblem(await ask(line, headers), 431, "headers_too_large");
  });

  it.each([8_193, 10_000, 16_384, 20_000, 70_000, 200_000])(
    "of a URL is refused with 414: %d bytes",
    async (size) => {
      for (const start of ["/", "/applications?id="]) {
        const url = start.padEnd(size, "a");
        expectProblem(await ask(`GET ${url} HTTP/1.1`), 414, "url_too_long");
      }
    },
  );

  it.each([
    [
      "a long header behind it",
      [`GET /${"a".repeat(10_000)} HTTP/1.1\r\nx: ${"b".repeat(10_000)}`],
    ],
    ["several packets", [`GET /${"a".repeat(10_000)}`, "b".repeat(5_000), "c".repeat(5_000)]],
    [
      "a request before it",
      ["GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", `GET /${"a".repeat(20_000)}`],
    ],
  ])("refuse a long URL with 414, with %s", async (_what, packets) => {
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

  it("allow a path of 8 kB, which returns 404", async () => {
    const response = await ask(`GET /${"a".repeat(8_000)} HTTP/1.1`);
    expectProblem(response, 404, "path_not_found");
  });
});

describe("the key header", () => {
  it.each(["SVC-API-KEY", "svc-api-key", "Svc-Api-Key", "sVC-aPI-kEY"])(
    "is %s as much as any other spelling",
    async (name) => {
      const { status } = await send(target, "/applications/key", {
        headers: { [name]: target.root.key },
      });
      expect(status).toBe(200);
    },
  );

  it.each<[what: string, headers: (key: string) => string]>([
    ["it is there twice", (key) => `svc-api-key: ${key}\r\nsvc-api-key: ${key}\r\n`],
    ["two keys are in it", (key) => `svc-api-key: ${key}, ${key}\r\n`],
    ["it is there once good and once empty", (key) => `svc-api-key: ${key}\r\nsvc-api-key:\r\n`],
    ["the key is in quotes", (key) => `svc-api-key: "${key}"\r\n`],
    ["the key is a bearer token", (key) => `svc-api-key: Bearer ${key}\r\n`],
    ["the key is in capitals", (key) => `svc-api-key: ${key.toUpperCase()}\r\n`],
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
      const refused = await ask(`GET ${path} HTTP/1.1`, "connection: close\r\n");
      expect(expectProblem(refused, 400, "invalid_request").errors).toHaveProperty("host");
      expect((await ask(`GET ${path} HTTP/1.0`, "")).status).toBe(200);
    }
  });

  it.each(["1.1", "1.0"])("must not be repeated over HTTP/%s", async (version) => {
    for (const hosts of ["host: a\r\nhost: a\r\n", "Host: a\r\nx: y\r\nHOST: b\r\n"]) {
      for (const path of ["/healthz", "/applications/key"]) {
        const response = await ask(`GET ${path} HTTP/${version}`, `${hosts}connection: close\r\n`);
        expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("host");
      }
      const rpc = await ask(`POST ${connectPath} HTTP/${version}`, `${hosts}${json}`, "{}");
      expect(rpc.status).toBe(400);
    }
  });

  it("is required for Connect as for REST", async () => {
    const response = await ask(`POST ${connectPath} HTTP/1.1`, json, "{}");
    expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("host");
    expect((await ask(`POST ${connectPath} HTTP/1.0`, json, "{}")).status).toBe(200);
  });

  it.each(["", "a b", "[::1", "a:99999999", "a<b>", "%", "🗝", "a/b?c#d"])(
    "%j harms nobody",
    async (host) => {
      const rest = await ask(
        "GET /applications/key HTTP/1.1",
        `connection: close\r\nhost: ${host}\r\n`,
      );
      expect(rest.status).toBe(200);
      const connect = await ask(`POST ${connectPath} HTTP/1.1`, `${json}host: ${host}\r\n`, "{}");
      expect([200, 400]).toContain(connect.status);
    },
  );
});
