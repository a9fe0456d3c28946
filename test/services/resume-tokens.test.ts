import { randomUUID } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type CursorSealerFactory,
  createCursorSealerFactory,
} from "../../src/auth/cursor-sealing.js";
import { Problem } from "../../src/errors.js";
import { type CursorList, createCursors } from "../../src/services/pagination.js";
import { createResumeTokens } from "../../src/services/streams.js";
import type { ListPosition } from "../../src/store/port/applications.js";
import { seedTenant } from "../contract/api/fixtures.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { startServer } from "../support/service/server.js";

const day = 24 * 3_600_000;
let now = Date.UTC(2026, 0);

/** The sealers of an instance on a store. */
function createSealers(storeId = "this store", ...peppers: string[]) {
  return createCursorSealerFactory({
    peppers: peppers.length > 0 ? peppers : [""],
    storeId,
    clock: () => now,
  });
}

const tokens = createResumeTokens(createSealers(), "credentials");

function catchProblem(open: () => unknown): Problem {
  try {
    open();
  } catch (problem) {
    if (problem instanceof Problem) {
      return problem;
    }
    throw problem;
  }
  throw new Error("the token was accepted");
}

describe("a resume token", () => {
  it("is readable by every instance on the same store", () => {
    fc.assert(
      fc.property(fc.uuid(), fc.string({ unit: "grapheme" }), (tenant, position) => {
        const token = tokens.seal(tenant, position);
        expect(token).toMatch(/^[\w-]+$/);
        expect(createResumeTokens(createSealers(), "credentials").open(tenant, token)).toBe(
          position,
        );
      }),
    );
  });

  it("fits into a request and differs each time", () => {
    const seal = () => tokens.seal("a tenant", "9".repeat(400));
    expect(seal().length).toBeLessThanOrEqual(1_000);
    expect(seal()).not.toBe(seal());
  });

  it("has the same length for small and large positions", () => {
    const lengths = ["1", "123456789012345", "671f5c2a0000000100000001.1794721567268"].map(
      (position) => tokens.seal("a tenant", position).length,
    );
    expect(new Set(lengths).size).toBe(1);
  });

  it.each(["!!!!", " ", "=", "\n", "AAAA"])("is refused with trailing %j", (suffix) => {
    const token = tokens.seal("a tenant", "7");
    expect(catchProblem(() => tokens.open("a tenant", token + suffix)).problemCode).toBe(
      "invalid_request",
    );
  });

  it("does not reveal the position", () => {
    const token = tokens.seal("a tenant", "1234567890");
    expect(Buffer.from(token, "base64url").includes("1234567890")).toBe(false);
  });

  it("hides the exact length of a long position", () => {
    const lengths = [60, 70, 80].map((size) => tokens.seal("a tenant", "9".repeat(size)).length);
    expect(new Set(lengths).size).toBe(1);
  });

  it("is refused for another tenant, store or feed", () => {
    const token = tokens.seal("a tenant", "1");
    for (const open of [
      () => tokens.open("another tenant", token),
      () =>
        createResumeTokens(createSealers("another store"), "credentials").open("a tenant", token),
      () => createResumeTokens(createSealers(), "events").open("a tenant", token),
    ]) {
      const { problemCode, violations } = catchProblem(open);
      expect(problemCode).toBe("invalid_request");
      expect(violations).toMatchObject([{ field: "resume_token" }]);
    }
  });

  it("is refused after a change of any bit", () => {
    const sealed = Buffer.from(tokens.seal("a tenant", "12345"), "base64url");
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.nat(7), (at, bit) => {
        const changed = Buffer.from(sealed);
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
        catchProblem(() => tokens.open("a tenant", changed.toString("base64url")));
      }),
    );
  });

  it("is refused if it was never issued, at any length", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 1_000 }), (text) => {
        catchProblem(() => tokens.open("a tenant", text));
      }),
    );
  });
});

function catchViolations(open: () => unknown): string {
  return catchProblem(open)
    .violations.map(({ field, message }) => `${field} ${message}`)
    .join();
}

describe("a pepper that seals resume tokens and cursors", () => {
  const first = "the first test pepper";
  const second = "the second test pepper";

  /** Each kind of sealed text, with functions to seal and open it. */
  const sealedKinds: [
    name: string,
    seal: (sealers: CursorSealerFactory) => string,
    open: (sealers: CursorSealerFactory, text: string) => unknown,
  ][] = [
    [
      "resume token",
      (sealers) => createResumeTokens(sealers, "events").seal(tenantId, "7"),
      (sealers, text) => createResumeTokens(sealers, "events").open(tenantId, text),
    ],
    [
      "cursor",
      (sealers) => createCursors(sealers, "name").encode(tenantId, { after, value: "shop" }),
      (sealers, text) => createCursors(sealers, "name").read(tenantId, text),
    ],
  ];

  it.each(sealedKinds)(
    "opens a %s for a day after it was replaced, then returns a helpful error",
    (_, seal, open) => {
      for (const [before, ...replaced] of [
        [[first], second, first],
        [[""], first, ""],
        [[second, first], "a third test pepper", second, first],
      ] as const) {
        const sealers = createSealers("this store", ...replaced);
        const text = seal(createSealers("this store", ...before));
        now += day;
        expect(() => open(sealers, text)).not.toThrow();
        now += 1;
        expect(catchViolations(() => open(sealers, text))).toMatch(
          /^(start|resume_token) was created more than a day ago, before the service replaced its secret: /,
        );
      }
    },
  );

  it.each(sealedKinds)("opens a %s as long as it is the current pepper", (_, seal, open) => {
    const text = seal(createSealers("this store", first));
    now += 400 * day;
    expect(() => open(createSealers("this store", first, second), text)).not.toThrow();
  });

  it.each(sealedKinds)(
    "does not open a %s after its removal or on another store",
    (_, seal, open) => {
      const text = seal(createSealers("this store", first));
      for (const sealers of [
        createSealers("this store", second),
        createSealers("this store", ""),
        createSealers("another store", first),
      ]) {
        expect(catchViolations(() => open(sealers, text))).toContain(" is not ");
      }
    },
  );
});

const tenantId = randomUUID();
const after = randomUUID();

function createReader(position: ListPosition, list: CursorList, other = list) {
  const start = createCursors(createSealers(), list).encode(tenantId, position);
  return () => createCursors(createSealers(), other).read(tenantId, start);
}

describe("a cursor", () => {
  it("of one protocol continues the list on another", async () => {
    const server = await startServer();
    const [rest, grpc] = [createRestApi(server.url), createGrpcApi(`127.0.0.1:${server.port}`)];
    try {
      const { root, shop, backend } = await seedTenant(server, rest);
      const request = {
        id: [shop.id, backend.id],
        createdBy: root.applicationId,
        lastUsedBefore: timestampFromMs(server.clock.now() + day),
        size: 1,
      };
      for (const [one, other] of [
        [rest, grpc],
        [grpc, rest],
      ] as const) {
        const { pagination } = await one.listApplications(root.key, request);
        const start = pagination?.next as string;
        const { data } = await other.listApplications(root.key, { ...request, start });
        expect(data).toHaveLength(1);
      }
    } finally {
      grpc.close();
      await server.close();
    }
  });

  it.each([
    ["newest", {}],
    ["sessions", {}],
    ["name", { value: 'ab "c" 日本' }],
    ["name", { value: "" }],
    ["expires_at", { value: 1_794_755_211_668 }],
    ["last_used_at", { value: 0 }],
  ] as const)("contains its position in the list %s", (list, value) => {
    expect(createReader({ after, ...value }, list)()).toEqual({ after, ...value });
  });

  it("is valid only for its own list and tenant", () => {
    expect(createReader({ after }, "newest", "sessions")).toThrow(Problem);
    const cursors = createCursors(createSealers(), "newest");
    const start = cursors.encode(tenantId, { after });
    expect(() => cursors.read(randomUUID(), start)).toThrow(Problem);
  });

  it.each([
    ["newest", '{"$gt":""}'],
    ["sessions", "1"],
    ["expires_at", "not a number"],
    ["expires_at", '{"$bad":1}'],
    ["last_used_at", "-1"],
    ["last_used_at", "NaN"],
    ["last_used_at", "1e400"],
  ] as const)("is refused for the list %s with the invalid value %s", (list, value) => {
    expect(createReader({ after, value }, list)).toThrow("is not a cursor of this list");
  });
});
