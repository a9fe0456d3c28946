import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Bootstrapped } from "../../src/bootstrap.js";
import { expectProblem, send } from "../support/http.js";
import { callRaw, envelope } from "../support/raw-grpc.js";
import { startServer, type TestServer } from "../support/server.js";

let server: TestServer;
let root: Bootstrapped;

beforeAll(async () => {
  server = await startServer("lmdb", { environment: { KEY_HEADER: "X-Latchkey" } });
  root = await server.createTenant();
});

afterAll(() => server.close());

describe("whoami where KEY_HEADER names another header", () => {
  it("tells whose key is in that header", async () => {
    const headers = { "x-latchkey": root.key };
    const { status, body } = await send(server, "/whoami", { headers });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({
      kind: "application",
      application_id: root.applicationId,
      tenant_id: root.tenantId,
      name: "Bootstrap",
      type: "management",
      authorized: true,
      permissions: expect.arrayContaining(["access:check"]),
      rules: [],
      allowed_origins: [],
      allowed_cidrs: [],
    });
    const path = "/latchkey.v1.AccessService/WhoAmI";
    const answer = await callRaw(server, path, { headers, body: envelope("") });
    expect(answer.headers["grpc-status"]).toBe("0");
    expect(answer.body.includes(root.applicationId)).toBe(true);
  });

  it("does not look at the usual one, and says which it looks at", async () => {
    const answer = await send(server, "/whoami", { headers: { "svc-api-key": root.key } });
    expect(expectProblem(answer, 401, "unauthenticated").detail).toContain("X-Latchkey");
  });
});
