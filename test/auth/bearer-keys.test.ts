import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { seedTenant, type Tenant } from "../contract/api/fixtures.js";
import { createRestApi } from "../support/api/rest.js";
import { expectProblem, send } from "../support/http/http.js";
import { startServer, type TestServer } from "../support/service/server.js";

let [accepting, refusing]: TestServer[] = [];
let tenant: Tenant;

beforeAll(async () => {
  accepting = await startServer("lmdb", {
    environment: { BEARER_KEYS: "accept", CORS_ORIGINS: "*" },
  });
  refusing = await startServer("lmdb", { store: accepting.store });
  tenant = await seedTenant(accepting, createRestApi(accepting.url));
});

afterAll(async () => {
  await refusing?.close();
  await accepting?.close();
});

function whoAmI(server: TestServer | undefined, headers: Record<string, string>) {
  return send(server as TestServer, "/whoami", { headers });
}

async function refusalOf(server: TestServer | undefined, headers: Record<string, string>) {
  const response = await whoAmI(server, headers);
  const { detail } = expectProblem(response, 401, "unauthenticated");
  return { detail, header: response.headers["www-authenticate"] };
}

describe("a key in Authorization: Bearer", () => {
  it("is accepted with BEARER_KEYS=accept", async () => {
    const { status, body } = await whoAmI(accepting, {
      authorization: `Bearer ${tenant.backend.key}`,
    });
    expect(status).toBe(200);
    expect(JSON.parse(body).application_id).toBe(tenant.backend.id);
  });

  it("is refused with 401 by default", async () => {
    const response = await whoAmI(refusing, { authorization: `Bearer ${tenant.backend.key}` });
    expectProblem(response, 401, "unauthenticated");
  });

  it("is named in the refusal only where Authorization is not read", async () => {
    const authorization = "Basic c2VjcmV0";
    const [read, unread] = [
      await whoAmI(accepting, { authorization }),
      await whoAmI(refusing, { authorization }),
    ].map((response) => expectProblem(response, 401, "unauthenticated").detail);
    expect(read).toMatch(/^The request has no key\. /);
    expect(unread).toMatch(/^The key is in Authorization, which this call does not read\. /);
  });

  it("is where a refusal says that the key may be, if it is accepted", async () => {
    for (const authorization of [`Bearer ${tenant.backend.key.slice(0, -1)}`, "Bearer x", ""]) {
      const { detail, header } = await refusalOf(accepting, { authorization });
      expect(detail).toMatch(/ in the SVC-API-KEY header or Authorization: Bearer\.$/);
      expect(header).toBe('ApiKey realm="latchkey", header="SVC-API-KEY", Bearer realm="latchkey"');
    }
    const { detail, header } = await refusalOf(refusing, { "svc-api-key": "x" });
    expect(detail).toMatch(/ in the SVC-API-KEY header\.$/);
    expect(header).toBe('ApiKey realm="latchkey", header="SVC-API-KEY"');
  });

  it("is refused with 400 beside another key, and accepted beside the same one", async () => {
    const authorization = `Bearer ${tenant.backend.key}`;
    const different = await whoAmI(accepting, { authorization, "svc-api-key": tenant.shop.key });
    const { errors } = expectProblem(different, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual(["authorization"]);
    expect(different.body).not.toContain(tenant.backend.key.slice(20));
    const same = await whoAmI(accepting, { authorization, "svc-api-key": tenant.backend.key });
    expect(same.status).toBe(200);
  });

  it("does not matter beside the key header by default", async () => {
    const { status, body } = await whoAmI(refusing, {
      authorization: `Bearer ${tenant.backend.key}`,
      "svc-api-key": tenant.shop.key,
    });
    expect(status).toBe(200);
    expect(JSON.parse(body).application_id).toBe(tenant.shop.id);
  });

  it("replays a response to the same Idempotency-Key", async () => {
    const create = () =>
      send(accepting as TestServer, "/applications", {
        method: "POST",
        headers: {
          authorization: `Bearer ${tenant.root.key}`,
          "content-type": "application/json",
          "idempotency-key": "9d5f1c1e-6a0c-4d5e-8d8a-0c2f5f1b7a11",
        },
        body: JSON.stringify({ name: "Once", type: "private", permissions: ["token:read"] }),
      });
    const [first, second] = [await create(), await create()];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toBe(first.body);
  });

  it("may be sent by browsers of allowed origins", async () => {
    const { headers } = await send(accepting as TestServer, "/whoami", {
      method: "OPTIONS",
      headers: { origin: "https://app.example", "access-control-request-method": "GET" },
    });
    expect(headers["access-control-allow-headers"]).toContain("Authorization");
  });
});
