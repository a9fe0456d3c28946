import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { startServer, type TestServer } from "../support/service/server.js";

let server: TestServer;

beforeAll(async () => {
  server = await startServer("lmdb");
});

afterAll(() => server.close());

describe("an update repeated with its Idempotency-Key over another protocol", () => {
  async function prepare() {
    const { key: root } = await server.createTenant();
    const [rest, grpc] = [createRestApi(server.url), createGrpcApi(`127.0.0.1:${server.port}`)];
    const created = await rest.createApplication(root, {
      name: "created",
      type: "private",
      permissions: ["token:read"],
    });
    const once = { key: root, headers: { "Idempotency-Key": randomUUID() } };
    return { rest, grpc, once, id: created.id };
  }

  it("returns the same response", async () => {
    const { rest, grpc, once, id } = await prepare();
    const update = { id, name: "changed", permissions: ["token:read", "token:use"] };
    const first = await rest.updateApplication(once, update);
    expect(await grpc.updateApplication(once, update)).toEqual(first);
    expect(await rest.updateApplication(once, update)).toEqual(first);
  });

  it("is refused if it changes other fields", async () => {
    const { rest, grpc, once, id } = await prepare();
    const update = { id, name: "changed", permissions: ["token:read"] };
    await grpc.updateApplication(once, update);
    for (const other of [
      { ...update, name: "other" },
      { ...update, description: "more" },
      { ...update, metadata: { team: "payments" } },
    ]) {
      await expect(rest.updateApplication(once, other)).rejects.toMatchObject({
        reason: "idempotency_key_reused",
      });
    }
  });
});
