import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { type CursorList, encodeCursor, readStart } from "../src/cursor.js";
import { Problem } from "../src/errors.js";
import type { Place } from "../src/store/store.js";

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
