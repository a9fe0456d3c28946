import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterEach, describe, expect, it } from "@jest/globals";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { type HttpResponse, send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const app = "https://app.example.com";
const createSessionPath = rpcPath(SessionService.method.createSession);
let server: TestServer;

afterEach(() => server.close());

function preflight(origin: string, path = "/sessions", method = "POST"): Promise<HttpResponse> {
  return send(server, path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": "svc-api-key, content-type",
    },
  });
}

function readList(response: HttpResponse, header: string): string[] {
  return (response.headers[header] ?? "").toLowerCase().split(", ");
}

function corsHeaders({ headers }: HttpResponse): string[] {
  return Object.keys(headers).filter((name) => name.startsWith("access-control-"));
}

describe("with CORS_ORIGINS", () => {
  it("allows a subdomain of a wildcard origin and returns its origin", async () => {
    server = await startServer("lmdb", {
      environment: { CORS_ORIGINS: `${app}, https://*.shop.example` },
    });
    for (const origin of ["https://www.shop.example", "https://eu.www.shop.example", app]) {
      const { headers } = await preflight(origin);
      expect(headers["access-control-allow-origin"]).toBe(origin);
      expect(headers.vary).toBe("Origin");
    }
    for (const origin of ["https://shop.example", "https://*.shop.example", "https://a.example"]) {
      expect(corsHeaders(await preflight(origin))).toEqual([]);
    }
  });

  it("allows every request header of the protocols for an allowed origin", async () => {
    server = await startServer("lmdb", {
      environment: { CORS_ORIGINS: `https://other.example.com, ${app}` },
    });
    const response = await preflight(app);
    expect(response.status).toBe(204);
    expect(response.headers["access-control-allow-origin"]).toBe(app);
    expect(readList(response, "access-control-allow-methods")).toEqual(
      expect.arrayContaining(["get", "post", "put", "patch", "delete"]),
    );
    expect(readList(response, "access-control-allow-headers")).toEqual(
      expect.arrayContaining([
        "svc-api-key",
        "content-type",
        "connect-protocol-version",
        "connect-timeout-ms",
        "grpc-timeout",
        "x-grpc-web",
        "x-user-agent",
        "traceparent",
        "tracestate",
        "x-request-id",
        "if-match",
        "idempotency-key",
      ]),
    );
  });

  it("caches a preflight for two hours", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    expect((await preflight(app)).headers["access-control-max-age"]).toBe("7200");
  });

  it("handles a preflight on every path and for every method", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    for (const path of ["/applications", "/applications/42", createSessionPath, "/openapi.json"]) {
      for (const method of ["GET", "POST", "PUT", "DELETE"]) {
        const { status, headers } = await preflight(app, path, method);
        expect([status, headers["access-control-allow-origin"]]).toEqual([204, app]);
      }
    }
  });

  it("exposes the response headers of the protocols, including those of errors", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    for (const [path, status] of [
      ["/sessions", 401],
      [createSessionPath, 401],
      ["/nothing", 404],
    ] as const) {
      const response = await send(server, path, {
        method: "POST",
        headers: { origin: app, "content-type": "application/json" },
        body: "{}",
      });
      expect(response.status).toBe(status);
      expect(response.headers["access-control-allow-origin"]).toBe(app);
      expect(readList(response, "access-control-expose-headers")).toEqual(
        expect.arrayContaining([
          "grpc-status",
          "grpc-message",
          "grpc-status-details-bin",
          "www-authenticate",
          "retry-after",
          "x-ratelimit-reset",
          "ratelimit",
          "ratelimit-policy",
          "x-request-id",
          "traceparent",
          "etag",
          "idempotent-replayed",
          "latchkey-session-id",
        ]),
      );
    }
  });

  it("sends no CORS headers to another origin, and varies by origin", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    for (const origin of [
      "https://evil.example.com",
      `${app}:8443`,
      "http://app.example.com",
      "null",
    ]) {
      for (const response of [
        await preflight(origin),
        await send(server, "/healthz", { headers: { origin } }),
        await send(server, "/healthz"),
      ]) {
        expect(corsHeaders(response)).toEqual([]);
        expect(response.headers.vary).toBe("Origin");
      }
    }
  });

  it("allows every origin with *", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: "*" } });
    for (const origin of [app, "null"]) {
      expect((await preflight(origin)).headers["access-control-allow-origin"]).toBe("*");
    }
  });

  it("never allows credentials", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    expect((await preflight(app)).headers).not.toHaveProperty("access-control-allow-credentials");
  });

  it("lists the header of KEY_HEADER in the preflight response", async () => {
    server = await startServer("lmdb", {
      environment: { CORS_ORIGINS: app, KEY_HEADER: "X-Latchkey" },
    });
    const allowed = readList(await preflight(app), "access-control-allow-headers");
    expect(allowed).toContain("x-latchkey");
    expect(allowed).not.toContain("svc-api-key");
  });

  it("allows browsers to open sessions over Connect and gRPC-Web", async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: app } });
    const root = await server.createTenant();
    const key = keyOf(
      await createRestApi(server.url).createApplication(root.key, {
        name: "page",
        type: "public",
        permissions: ["token:read"],
      }),
    );
    const headers = { origin: app, "svc-api-key": key };
    for (const createTransport of [createConnectTransport, createGrpcWebTransport]) {
      let allowed: string | undefined | null;
      const client = createClient(SessionService, createTransport({ baseUrl: server.url }));
      const onHeader = (header: Headers) => {
        allowed = header.get("access-control-allow-origin");
      };
      await client.createSession({}, { headers, onHeader });
      expect(allowed).toBe(app);
    }
  });
});

describe("without CORS_ORIGINS", () => {
  it("sends no CORS headers to any origin", async () => {
    server = await startServer();
    for (const response of [
      await preflight(app),
      await send(server, "/healthz", { headers: { origin: app } }),
    ]) {
      expect(corsHeaders(response)).toEqual([]);
      expect(response.headers).not.toHaveProperty("vary");
    }
  });

  it("returns 405 for OPTIONS without a preflight", async () => {
    server = await startServer();
    const response = await send(server, "/sessions", {
      method: "OPTIONS",
      headers: { origin: app },
    });
    expect([response.status, response.headers.allow]).toEqual([405, "POST, GET, HEAD"]);
  });
});
