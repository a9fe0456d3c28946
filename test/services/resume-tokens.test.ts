import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  createCursorSealerFactory,
  type CursorSealerFactory as Sealing,
} from "../../src/auth/sealing.js";
import { Problem } from "../../src/errors.js";
import { type CursorList, createCursors } from "../../src/services/cursors.js";
import { createResumeTokens } from "../../src/services/streams.js";
import type { ListPosition } from "../../src/store/port/applications.js";

const day = 24 * 3_600_000;
let now = Date.UTC(2026, 0);

/** The sealing of an instance on a store. */
function createSealer(storeId = "this store", ...peppers: string[]) {
  return createCursorSealerFactory({
    peppers: peppers.length > 0 ? peppers : [""],
    storeId,
    clock: () => now,
  });
}

const tokens = createResumeTokens(createSealer(), "credentials");

function refusalOf(open: () => unknown): Problem {
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
  it("is readable by every instance on the same store", () => {
    fc.assert(
      fc.property(fc.uuid(), fc.string({ unit: "grapheme" }), (tenant, position) => {
        const token = tokens.seal(tenant, position);
        expect(token).toMatch(/^[\w-]+$/);
        expect(createResumeTokens(createSealer(), "credentials").open(tenant, token)).toBe(
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

  it.each(["!!!!", " ", "=", "\n", "AAAA"])("is refused with trailing %j", (rest) => {
    const token = tokens.seal("a tenant", "7");
    expect(refusalOf(() => tokens.open("a tenant", token + rest)).problemCode).toBe(
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
        createResumeTokens(createSealer("another store"), "credentials").open("a tenant", token),
      () => createResumeTokens(createSealer(), "events").open("a tenant", token),
    ]) {
      const { problemCode: word, violations } = refusalOf(open);
      expect(word).toBe("invalid_request");
      expect(violations).toMatchObject([{ field: "resume_token" }]);
    }
  });

  it("is refused after a change of any bit", () => {
    const sealed = Buffer.from(tokens.seal("a tenant", "12345"), "base64url");
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.nat(7), (at, bit) => {
        const changed = Buffer.from(sealed);
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
        refusalOf(() => tokens.open("a tenant", changed.toString("base64url")));
      }),
    );
  });

  it("is refused if made up, at any length", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 1_000 }), (text) => {
        refusalOf(() => tokens.open("a tenant", text));
      }),
    );
  });
});

/** The error for a refused token. */
function messageOf(open: () => unknown): string {
  return refusalOf(open)
    .violations.map(({ field, message }) => `${field} ${message}`)
    .join();
}

describe("a pepper that seals resume tokens and cursors", () => {
  const first = "the first pepper of these";
  const second = "the second pepper of these";

  /** Everything that is sealed for callers, as round trips between two instances. */
  const uses: [
    string,
    (sealing: Sealing) => string,
    (opening: Sealing, text: string) => unknown,
  ][] = [
    [
      "resume token",
      (sealing) => createResumeTokens(sealing, "events").seal(tenantId, "7"),
      (opening, text) => createResumeTokens(opening, "events").open(tenantId, text),
    ],
    [
      "cursor",
      (sealing) => createCursors(sealing, "name").encode(tenantId, { after, value: "shop" }),
      (opening, text) => createCursors(opening, "name").read(tenantId, text),
    ],
  ];

  it.each(uses)(
    "opens a %s for a day after it was replaced, then explains what to do",
    (_, seal, open) => {
      for (const [before, ...replaced] of [
        [[first], second, first],
        [[""], first, ""],
        [[second, first], "a third pepper of these", second, first],
      ] as const) {
        const opening = createSealer("this store", ...replaced);
        const text = seal(createSealer("this store", ...before));
        now += day;
        expect(() => open(opening, text)).not.toThrow();
        now += 1;
        expect(messageOf(() => open(opening, text))).toMatch(
          /^(start|resume_token) was created more than a day ago with a replaced key: /,
        );
      }
    },
  );

  it.each(uses)("opens a %s as long as it is the current pepper", (_, seal, open) => {
    const text = seal(createSealer("this store", first));
    now += 400 * day;
    expect(() => open(createSealer("this store", first, second), text)).not.toThrow();
  });

  it.each(uses)("opens no %s after its removal or of another store", (_, seal, open) => {
    const text = seal(createSealer("this store", first));
    for (const opening of [
      createSealer("this store", second),
      createSealer("this store", ""),
      createSealer("another store", first),
    ]) {
      expect(messageOf(() => open(opening, text))).toContain(" is not ");
    }
  });
});

const tenantId = randomUUID();
const after = randomUUID();

function read(place: ListPosition, list: CursorList, other = list) {
  const start = createCursors(createSealer(), list).encode(tenantId, place);
  return () => createCursors(createSealer(), other).read(tenantId, start);
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

  it("is valid only for its own list and tenant", () => {
    expect(read({ after }, "newest", "sessions")).toThrow(Problem);
    const cursors = createCursors(createSealer(), "newest");
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
  ] as const)("of the list %s that was made up around %s is refused", (list, value) => {
    expect(read({ after, value }, list)).toThrow("is not a cursor of this list");
  });
});
