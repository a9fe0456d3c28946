import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type StreamCheckAccessResponse,
  StreamCheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { makeKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import type { StreamedCheck, StreamingApi } from "../../support/api/api.js";
import { createRequestStream, useReaders } from "../../support/api/streams.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { keepsRules } from "./keeps-rules.js";
import { expectRefused, type Refusal } from "./refused.js";
import { createTenant as createTenantIn, type Tenant } from "./tenant.js";

const permission = "token:read";
const permissions = [permission];
const rules = [{ priority: 1, container: "/pci/", transform: "reveal", permissions }];

interface CheckStreamSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

/** Checks that come and are answered on one stream. */
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

  const createTenant = () => createTenantIn(server, api);

  function open(key: string | undefined) {
    const requests = createRequestStream<StreamedCheck>();
    const reader = read((signal) => api.streamCheckAccess(key, requests, signal));
    const next = async () => keepsRules(StreamCheckAccessResponseSchema, await reader.next());

    async function take(count: number): Promise<StreamCheckAccessResponse[]> {
      const answers: StreamCheckAccessResponse[] = [];
      while (answers.length < count) {
        answers.push(await reader.next());
      }
      return answers;
    }

    return { ...reader, send: requests.send, hangUp: requests.end, next, take };
  }

  describe("a stream of checks", () => {
    it("decides each like a single check, in order", async () => {
      const tenant = await createTenant();
      const other = await createTenant();
      const limited = await tenant.make("private", { rules });
      const limits = { permissions, allowedCidrs: ["203.0.113.0/24"] };
      const placed = await tenant.make("private", limits);
      const stream = open(tenant.root.key);
      const checks = [
        { key: tenant.backend.key, permission },
        { key: placed.key, permission, address: "203.0.113.7" },
        { key: placed.key, permission, address: "::1" },
        { key: placed.key, permission },
        { key: limited.key, permission, token: { container: "/pci/" } },
        { key: limited.key, permission },
        { key: (await tenant.open()).key, permission },
        { key: (await tenant.open({ permissions })).key, permission },
        { key: makeKey("prv", newId(0)), permission },
        { key: other.backend.key, permission },
      ];
      const results = [];
      for (const [at, check] of checks.entries()) {
        stream.send({ correlationId: `no. ${at}`, check });
        const { correlationId, result } = await stream.next();
        expect(correlationId).toBe(`no. ${at}`);
        expect(result).toEqual(await api.checkAccess(tenant.root.key, check));
        results.push(result);
      }
      expect(results.at(-1)).toEqual(results.at(-2));
    });

    it("handles many at a time, returns all with their ids, and ends when its caller does", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.make("private", { permissions, rules });
      const stream = open(tenant.root.key);
      const count = 1_500;
      const names = Array.from({ length: count }, (_, at) => String(at));
      stream.send(
        ...names.map((correlationId, at) => ({
          correlationId,
          check: { key, permission, token: { container: at % 2 === 0 ? "/pci/" : "/other/" } },
        })),
      );
      const answers = await stream.take(count);
      const transforms = new Map(
        answers.map(({ correlationId, result }) => [correlationId, result?.transform]),
      );
      expect(transforms.size).toBe(count);
      for (const [at, name] of names.entries()) {
        expect(transforms.get(name)).toBe(at % 2 === 0 ? "reveal" : "mask");
      }
      stream.hangUp();
      expect(await stream.end()).toBeUndefined();
    });

    it("responds to every check that was sent before its caller closed the stream", async () => {
      const { root, backend } = await createTenant();
      const stream = open(root.key);
      const check = { key: backend.key, permission };
      stream.send(...Array.from({ length: 50 }, () => ({ correlationId: "same", check })));
      stream.send({ check });
      stream.hangUp();
      const answers = await stream.take(51);
      expect(answers.filter(({ correlationId }) => correlationId === "same")).toHaveLength(50);
      expect(answers.every(({ result }) => result?.allowed)).toBe(true);
      expect(await stream.end()).toBeUndefined();
    });

    it("reports an invalid check and continues", async () => {
      const { root, backend } = await createTenant();
      const { key } = backend;
      const stream = open(root.key);
      const bad: [check: StreamedCheck, field: string][] = [
        [{}, "check"],
        [{ check: {} }, "check.key"],
        [{ check: { key: "secret", permission } }, "check.key"],
        [{ check: { key: `${key}x`, permission } }, "check.key"],
        [{ check: { key } }, "check.permission"],
        [{ check: { key, permission: "token" } }, "check.permission"],
        [{ check: { key, permission, token: {} } }, "check.token"],
        [{ check: { key, permission, token: { container: "//" } } }, "check.token.container"],
      ];
      for (const [at, [request, field]] of bad.entries()) {
        const good = { correlationId: `good ${at}`, check: { key, permission } };
        stream.send({ ...request, correlationId: `bad ${at}` } as StreamedCheck, good);
        const answers = await stream.take(2);
        const answerTo = (name: string) =>
          answers.find(({ correlationId }) => correlationId === `${name} ${at}`)?.result;
        expect(answerTo("good")).toMatchObject({ allowed: true });
        expect(answerTo("bad")).toMatchObject({
          allowed: false,
          reason: "invalid_request",
          detail: expect.stringContaining(`${field}: `),
        });
        expect(answerTo("bad")?.detail).not.toContain(key.slice(30));
      }
    });

    it("identifies a check whose correlation id is too long", async () => {
      const { root, backend } = await createTenant();
      const stream = open(root.key);
      const correlationId = "x".repeat(101);
      stream.send({ correlationId, check: { key: backend.key, permission } });
      const { correlationId: told, result } = await stream.next();
      expect(told).toBe(correlationId);
      expect(result).toMatchObject({
        reason: "invalid_request",
        detail: expect.stringContaining("correlation_id: "),
      });
    });

    it("reflects each change at once", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.make("private", { permissions });
      const stream = open(tenant.root.key);
      const ask = async () => {
        stream.send({ check: { key, permission } });
        return (await stream.next()).result?.reason ?? "allowed";
      };
      expect(await ask()).toBe("allowed");
      const update = { id, name: "private one", permissions: ["token:use"] };
      await api.updateApplication(tenant.root.key, update);
      expect(await ask()).toBe("permission_missing");
      await api.regenerateApplicationKey(tenant.root.key, { id });
      expect(await ask()).toBe("unknown_key");
    });

    it("is refused without a valid key or without access:check", async () => {
      const { shop } = await createTenant();
      for (const [key, reason] of [
        [undefined, "unauthenticated"],
        ["secret", "unauthenticated"],
        [shop.key, "permission_denied"],
      ] as const) {
        await expectRefused(open(key).next(), reason, "grpc");
      }
    });

    it.each<[what: string, reason: Refusal, end: (tenant: Tenant) => Promise<unknown>]>([
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
        "permission is taken away",
        "permission_denied",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, { id, name: "backend", permissions }),
      ],
      [
        "network is no longer allowed",
        "address_not_allowed",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, {
            ...{ id, name: "backend", permissions: ["access:check"] },
            allowedCidrs: ["203.0.113.0/24"],
          }),
      ],
    ])("ends at the next check when its caller's %s", async (_what, reason, end) => {
      const tenant = await createTenant();
      const stream = open(tenant.backend.key);
      const check = { key: tenant.shop.key, permission: "token:create" };
      stream.send({ correlationId: "before", check });
      expect((await stream.next()).result).toMatchObject({ allowed: true });
      await end(tenant);
      stream.send({ correlationId: "after", check });
      await expectRefused(stream.next(), reason, "grpc");
    });

    it("ends at the next check when its caller's session has expired", async () => {
      const tenant = await createTenant();
      const session = await tenant.open({ permissions: ["access:check"] });
      const stream = open(session.key);
      const check = { key: tenant.shop.key, permission: "token:create" };
      stream.send({ check });
      expect((await stream.next()).result).toMatchObject({ allowed: true });
      server.clock.advance(180_000);
      stream.send({ check });
      await expectRefused(stream.next(), "unauthenticated", "grpc");
    });
  });
}
