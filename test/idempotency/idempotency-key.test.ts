import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseIdempotencyKey } from "../../src/idempotency/idempotency.js";

const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const keys = fc.string({ unit: visible, minLength: 1, maxLength: 255 });

/** Writes a string of RFC 8941. */
const quote = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;

describe("an Idempotency-Key", () => {
  it("is the same in double quotes", () => {
    fc.assert(fc.property(keys, (key) => expect(parseIdempotencyKey(quote(key))).toBe(key)));
  });

  it("is read as it is without them", () => {
    const bare = keys.filter((key) => !key.startsWith('"'));
    fc.assert(fc.property(bare, (key) => expect(parseIdempotencyKey(key)).toBe(key)));
  });

  it("is never longer than 255 characters, and always visible", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary-ascii", maxLength: 600 }),
      fc.string({ maxLength: 300 }).map(quote),
      fc.string({ unit: fc.constantFrom('"', "\\", "a", " "), maxLength: 8 }),
    );
    const property = fc.property(texts, (text) => {
      expect(parseIdempotencyKey(text) ?? "none").toMatch(/^[!-~]{1,255}$/);
    });
    fc.assert(property, { numRuns: 1_000 });
  });
});
