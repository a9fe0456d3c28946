import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { exchangeRaw, send } from "../../support/http/http.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const watchCredentialsPath = rpcPath(AccessService.method.watchCredentials);
const tls = { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" };

describe("every response", () => {
  let server: TestServer;
  let root: BootstrapResult;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { CORS_ORIGINS: "*" } });
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  const keyHeader = () => ({ "svc-api-key": root.key });
  type Headers = Readonly<Record<string, string>>;
  const post = (path: string, type: string, body: Uint8Array | string) => () =>
    send(server, path, { method: "POST", headers: { ...keyHeader(), "content-type": type }, body });
  const cases: [what: string, call: () => Promise<{ headers: Headers }>][] = [
    ["over REST", () => send(server, "/applications/key", { headers: keyHeader() })],
    ["to OPTIONS", () => send(server, "/applications/key", { method: "OPTIONS" })],
    ["to a preflight", () => preflight()],
    ["to an unauthenticated request", () => send(server, "/applications/key")],
    ["to an unknown path", () => send(server, "/nowhere")],
    ["of the health check", () => send(server, "/healthz")],
    ["with the OpenAPI document", () => send(server, "/openapi.json")],
    ["to malformed HTTP", () => exchangeRaw(server, "nonsense\r\n\r\n")],
    ["over Connect", post(getApplicationByKeyPath, "application/json", "{}")],
    ["over gRPC-Web", post(getApplicationByKeyPath, "application/grpc-web+proto", envelope(""))],
    ["of a Connect stream", post(watchCredentialsPath, "application/connect+json", envelope("x"))],
    [
      "over REST on HTTP/2",
      () => callRaw(server, "/applications/key", { headers: { ...keyHeader(), ":method": "GET" } }),
    ],
  ];
  const preflight = () =>
    send(server, "/applications", {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "POST" },
    });

  it.each(cases)(
    "is not cached and not rendered as a page: the response %s",
    async (_what, call) => {
      const { headers } = await call();
      expect(headers).toMatchObject({
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      });
      expect(headers).not.toHaveProperty("server");
      expect(headers).not.toHaveProperty("x-powered-by");
      expect(headers).not.toHaveProperty("strict-transport-security");
    },
  );

  it("is not cached and has no browser headers over gRPC", async () => {
    const { headers } = await callRaw(server, getApplicationByKeyPath, {
      headers: keyHeader(),
      body: envelope(""),
    });
    expect(headers).toMatchObject({ "grpc-status": "0", "cache-control": "no-store" });
    expect(headers).not.toHaveProperty("content-security-policy");
  });
});

it("every response over TLS has Strict-Transport-Security", async () => {
  const server = await startServer("lmdb", { environment: tls });
  const session = connectHttp2(server.url, { ca: readFileSync(tls.TLS_CERT) });
  for (const path of ["/healthz", "/nowhere", "/applications/key"]) {
    const { headers } = await callRaw(server, path, { headers: { ":method": "GET" } }, session);
    expect(headers["strict-transport-security"]).toBe("max-age=31536000");
  }
  session.destroy();
  await server.close();
});
