import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { newId } from "../../src/ids.js";
import { makeKey } from "../../src/keys.js";
import { startServer, type TestServer } from "../support/server.js";

describe("an answer in the JSON of Connect", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
  });

  afterAll(() => server.close());

  async function call(key: string, method: string, request: object) {
    const response = await fetch(`${server.url}/latchkey.v1.AccessService/${method}`, {
      method: "POST",
      headers: { "SVC-API-KEY": key, "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    return response.json();
  }

  it("says that something is not allowed, and leaves it not to be guessed", async () => {
    const { key } = await server.createTenant();
    const unknown = makeKey("prv", newId(Date.now()));
    expect(
      await call(key, "CheckAccess", { key: unknown, permission: "token:read" }),
    ).toMatchObject({ allowed: false, reason: "unknown_key" });
  });

  it("writes empty lists", async () => {
    const { key } = await server.createTenant();
    expect(await call(key, "WhoAmI", {})).toMatchObject({ kind: "application", rules: [] });
  });
});
