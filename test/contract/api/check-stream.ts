import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type StreamCheckAccessResponse,
  StreamCheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import type { StreamingApi } from "../../support/api/api.js";
import type { StreamedCheck } from "../../support/api/checks.js";
import { createRequestStream, useReaders } from "../../support/api/streams.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { createExpectRefused, expectValid, type Refusal } from "./assertions.js";
import { seedTenant, type Tenant } from "./fixtures.js";

const permission = "token:read";
const permissions = [permission];
const rules = [{ priority: 1, container: "/pci/", transform: "reveal", permissions }];
const expectRefused = createExpectRefused("grpc");

interface CheckStreamSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

export function describeCheckStream({ engine, connect }: CheckStreamSuiteOptions): void {
  const read = useReaders();
  let server: TestServer;
  let api: StreamingApi;

  beforeAll(async () => {
    server = await startServer(engine);
    api = connect(server);
  });

  afterAll(async () => {
    api.close();
    await server.close();
  });

  const createTenant = () => seedTenant(server, api);

  function open(key: string | undefined) {
    const requests = createRequestStream<StreamedCheck>();
    const reader = read((signal) => api.streamCheckAccess(key, requests, signal));
    const next = async () => expectValid(StreamCheckAccessResponseSchema, await reader.next());

    async function take(count: number): Promise<StreamCheckAccessResponse[]> {
      const responses: StreamCheckAccessResponse[] = [];
      while (responses.length < count) {
        responses.push(await reader.next());
      }
      return responses;
    }

    return { ...reader, send: requests.send, closeSend: requests.end, next, take };
  }

  describe("a stream of checks", () => {
    it("decides each like a single check, in order", async () => {
      const tenant = await createTenant();
      const other = await createTenant();
      const limited = await tenant.createApplication("private", { rules });
      const restricted = { permissions, allowedCidrs: ["203.0.113.0/24"] };
      const restrictedApp = await tenant.createApplication("private", restricted);
      const stream = open(tenant.root.key);
      const checks = [
        { key: tenant.backend.key, permission },
        { key: restrictedApp.key, permission, address: "203.0.113.7" },
        { key: restrictedApp.key, permission, address: "203.0.113.7:4312" },
        { key: restrictedApp.key, permission, address: "::1" },
        { key: restrictedApp.key, permission },
        { key: limited.key, permission, token: { container: "/pci/" } },
        { key: limited.key, permission },
        { key: (await tenant.openSession()).key, permission },
        { key: (await tenant.openSession({ permissions })).key, permission },
        { key: generateKey("prv", newId(0)), permission },
        { key: other.backend.key, permission },
      ];
      const results = [];
      for (const [index, check] of checks.entries()) {
        stream.send({ correlationId: `no. ${index}`, check });
        const { correlationId, result } = await stream.next();
        expect(correlationId).toBe(`no. ${index}`);
        expect(result).toEqual(await api.checkAccess(tenant.root.key, check));
        results.push(result);
      }
      expect(results.at(-1)).toEqual(results.at(-2));
    });

    it("handles concurrent checks, returns each with its id, and ends when its caller closes it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { permissions, rules });
      const stream = open(tenant.root.key);
      const count = 1_500;
      const names = Array.from({ length: count }, (_, index) => String(index));
      stream.send(
        ...names.map((correlationId, index) => ({
          correlationId,
          check: { key, permission, token: { container: index % 2 === 0 ? "/pci/" : "/other/" } },
        })),
      );
      const responses = await stream.take(count);
      const transforms = new Map(
        responses.map(({ correlationId, result }) => [correlationId, result?.transform]),
      );
      expect(transforms.size).toBe(count);
      for (const [index, name] of names.entries()) {
        expect(transforms.get(name)).toBe(index % 2 === 0 ? "reveal" : "mask");
      }
      stream.closeSend();
      expect(await stream.end()).toBeUndefined();
    });

    it("responds to every check that was sent before its caller closed the stream", async () => {
      const { root, backend } = await createTenant();
      const stream = open(root.key);
      const check = { key: backend.key, permission };
      stream.send(...Array.from({ length: 50 }, () => ({ correlationId: "same", check })));
      stream.send({ check });
      stream.closeSend();
      const responses = await stream.take(51);
      expect(responses.filter(({ correlationId }) => correlationId === "same")).toHaveLength(50);
      expect(responses.every(({ result }) => result?.allowed)).toBe(true);
      expect(await stream.end()).toBeUndefined();
    });

    it("reports an invalid check and continues", async () => {
      const { root, backend } = await createTenant();
      const { key } = backend;
      const stream = open(root.key);
      const bad: [check: StreamedCheck, field: string][] = [
        [{}, "check"],
        [{ check: {} }, "check"],
        [{ check: { key: "secret", permission } }, "check.key"],
        [{ check: { key: `${key}x`, permission } }, "check.key"],
        [{ check: { key } }, "check.permission"],
        [{ check: { key, permission: "token" } }, "check.permission"],
        [{ check: { key, permission, token: {} } }, "check.token"],
        [{ check: { key, permission, token: { container: "//" } } }, "check.token.container"],
      ];
      for (const [index, [request, field]] of bad.entries()) {
        const good = { correlationId: `good ${index}`, check: { key, permission } };
        stream.send({ ...request, correlationId: `bad ${index}` } as StreamedCheck, good);
        const responses = await stream.take(2);
        const resultFor = (name: string) =>
          responses.find(({ correlationId }) => correlationId === `${name} ${index}`)?.result;
        expect(resultFor("good")).toMatchObject({ allowed: true });
        expect(resultFor("bad")).toMatchObject({
          allowed: false,
          reason: "invalid_request",
          detail: expect.stringContaining(`${field}: `),
        });
        expect(resultFor("bad")?.detail).not.toContain(key.slice(30));
      }
    });

    it("identifies a check whose correlation id is too long", async () => {
      const { root, backend } = await createTenant();
      const stream = open(root.key);
      const correlationId = "x".repeat(101);
      stream.send({ correlationId, check: { key: backend.key, permission } });
      const { correlationId: returnedId, result } = await stream.next();
      expect(returnedId).toBe(correlationId);
      expect(result).toMatchObject({
        reason: "invalid_request",
        detail: expect.stringContaining("correlation_id: "),
      });
    });

    it("reflects each change at once", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { permissions });
      const stream = open(tenant.root.key);
      const check = async () => {
        stream.send({ check: { key, permission } });
        return (await stream.next()).result?.reason ?? "allowed";
      };
      expect(await check()).toBe("allowed");
      const update = { id, name: "private one", permissions: ["token:use"] };
      await api.updateApplication(tenant.root.key, update);
      expect(await check()).toBe("permission_missing");
      await api.regenerateApplicationKey(tenant.root.key, { id });
      expect(await check()).toBe("unknown_key");
    });

    it("is refused without a valid key or without access:check", async () => {
      const { shop } = await createTenant();
      for (const [key, reason] of [
        [undefined, "unauthenticated"],
        ["secret", "unauthenticated"],
        [shop.key, "permission_denied"],
      ] as const) {
        await expectRefused(open(key).next(), reason);
      }
    });

    it.each<[name: string, reason: Refusal, revoke: (tenant: Tenant) => Promise<unknown>]>([
      [
        "key is deleted",
        "unauthenticated",
        ({ root, backend }) => api.deleteApplication(root.key, backend),
      ],
      [
        "key is regenerated",
        "unauthenticated",
        ({ root, backend }) => api.regenerateApplicationKey(root.key, backend),
      ],
      [
        "permission is removed",
        "permission_denied",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, { id, name: "backend", permissions }),
      ],
      [
        "network is no longer allowed",
        "address_not_allowed",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, {
            id,
            name: "backend",
            permissions: ["access:check"],
            allowedCidrs: ["203.0.113.0/24"],
          }),
      ],
    ])("ends at the next check when its caller's %s", async (_case, reason, revoke) => {
      const tenant = await createTenant();
      const stream = open(tenant.backend.key);
      const check = { key: tenant.shop.key, permission: "token:create" };
      stream.send({ correlationId: "before", check });
      expect((await stream.next()).result).toMatchObject({ allowed: true });
      await revoke(tenant);
      stream.send({ correlationId: "after", check });
      await expectRefused(stream.next(), reason);
    });

    it("ends at the next check when its caller's session has expired", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession({ permissions: ["access:check"] });
      const stream = open(session.key);
      const check = { key: tenant.shop.key, permission: "token:create" };
      stream.send({ check });
      expect((await stream.next()).result).toMatchObject({ allowed: true });
      server.clock.advance(180_000);
      stream.send({ check });
      await expectRefused(stream.next(), "unauthenticated");
    });
  });
}
