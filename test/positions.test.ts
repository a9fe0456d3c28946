import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type CursorList, encodeCursor, readStart } from "../src/cursor.js";
import { Problem } from "../src/errors.js";
import { createResumeTokens } from "../src/resume-token.js";
import type { Place } from "../src/store/store.js";

const tokens = createResumeTokens("this store", "credentials");

function refusalOf(open: () => string): Problem {
  try {
    open();
  } catch (problem) {
    if (problem instanceof Problem) {
      return problem;
    }
    throw problem;
  }
  throw new Error("the token was taken");
}

describe("a resume token", () => {
  it("opens to the place that was sealed, in every instance on the same data", () => {
    fc.assert(
      fc.property(fc.uuid(), fc.string({ unit: "grapheme" }), (tenant, position) => {
        const token = tokens.seal(tenant, position);
        expect(token).toMatch(/^[\w-]+$/);
        expect(createResumeTokens("this store", "credentials").open(tenant, token)).toBe(position);
      }),
    );
  });

  it("fits into a request, and is another one each time", () => {
    const seal = () => tokens.seal("a tenant", "9".repeat(400));
    expect(seal().length).toBeLessThanOrEqual(1_000);
    expect(seal()).not.toBe(seal());
  });

  it("is as long for a small number as for a large one", () => {
    const lengths = ["1", "123456789012345", "671f5c2a0000000100000001.1794721567268"].map(
      (position) => tokens.seal("a tenant", position).length,
    );
    expect(new Set(lengths).size).toBe(1);
  });

  it.each(["!!!!", " ", "=", "\n", "AAAA"])("with %j behind it is refused", (rest) => {
    const token = tokens.seal("a tenant", "7");
    expect(refusalOf(() => tokens.open("a tenant", token + rest)).word).toBe("invalid_request");
  });

  it("does not show the place", () => {
    const token = tokens.seal("a tenant", "1234567890");
    expect(Buffer.from(token, "base64url").includes("1234567890")).toBe(false);
  });

  it("of a long place tells its length no more exactly", () => {
    const lengths = [60, 70, 80].map((size) => tokens.seal("a tenant", "9".repeat(size)).length);
    expect(new Set(lengths).size).toBe(1);
  });

  it("opens for no other tenant, for no other data, and for nothing else that is watched", () => {
    const token = tokens.seal("a tenant", "1");
    for (const open of [
      () => tokens.open("another tenant", token),
      () => createResumeTokens("another store", "credentials").open("a tenant", token),
      () => createResumeTokens("this store", "events").open("a tenant", token),
    ]) {
      const { word, violations } = refusalOf(open);
      expect(word).toBe("invalid_request");
      expect(violations).toMatchObject([{ field: "resume_token" }]);
    }
  });

  it("opens no more when any bit of it is another", () => {
    const sealed = Buffer.from(tokens.seal("a tenant", "12345"), "base64url");
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.nat(7), (at, bit) => {
        const changed = Buffer.from(sealed);
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
        refusalOf(() => tokens.open("a tenant", changed.toString("base64url")));
      }),
    );
  });

  it("is not what anyone makes up, however short or long", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 1_000 }), (text) => {
        refusalOf(() => tokens.open("a tenant", text));
      }),
    );
  });
});

const tenantId = randomUUID();
const after = randomUUID();

function read(place: Place, list: CursorList, other = list) {
  return () => readStart(tenantId, encodeCursor(tenantId, place, list), other);
}

describe("a cursor", () => {
  it.each([
    ["newest", {}],
    ["sessions", {}],
    ["name", { value: 'ab "c" 日本' }],
    ["name", { value: "" }],
    ["expires_at", { value: 1_794_755_211_668 }],
    ["last_used_at", { value: 0 }],
  ] as const)("of the list %s holds its place", (list, value) => {
    expect(read({ after, ...value }, list)()).toEqual({ after, ...value });
  });

  it("is good for its own list and tenant only", () => {
    expect(read({ after }, "newest", "sessions")).toThrow(Problem);
    const start = encodeCursor(tenantId, { after }, "newest");
    expect(() => readStart(randomUUID(), start, "newest")).toThrow(Problem);
  });

  it.each([
    ["newest", '{"$gt":""}'],
    ["sessions", "1"],
    ["expires_at", "not a number"],
    ["expires_at", '{"$bad":1}'],
    ["last_used_at", "-1"],
    ["last_used_at", "NaN"],
    ["last_used_at", "1e400"],
  ] as const)("of the list %s that was made up around %s is refused", (list, value) => {
    expect(read({ after, value }, list)).toThrow("is not a cursor of this list");
  });
});
