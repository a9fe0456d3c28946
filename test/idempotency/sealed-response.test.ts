import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createResponseSeal, responseId } from "../../src/idempotency/sealed-response.js";

const fingerprint = fc.uint8Array({ minLength: 32, maxLength: 32 });
const response = fc.uint8Array({ maxLength: 2_000 });
const id = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString("hex"));
const stored = fc.record({ fingerprint, response });
const secrets = fc.record({
  apiKey: fc.string({ minLength: 1 }),
  idempotencyKey: fc.string({ minLength: 1 }),
});

describe("a sealed response", () => {
  it("opens unchanged with the same key and id", () => {
    fc.assert(
      fc.property(secrets, id, stored, (key, id, stored) => {
        const opened = createResponseSeal(key, id).open(createResponseSeal(key, id).seal(stored));
        expect(Buffer.from(opened?.fingerprint ?? [])).toEqual(Buffer.from(stored.fingerprint));
        expect(Buffer.from(opened?.response ?? [])).toEqual(Buffer.from(stored.response));
      }),
    );
  });

  it("does not open with another API key, Idempotency-Key or id", () => {
    fc.assert(
      fc.property(secrets, secrets, id, id, stored, (key, other, id, otherId, stored) => {
        const sealed = createResponseSeal(key, id).seal(stored);
        const { apiKey, idempotencyKey } = other;
        fc.pre(key.apiKey !== apiKey && key.idempotencyKey !== idempotencyKey && id !== otherId);
        expect(createResponseSeal({ ...key, apiKey }, id).open(sealed)).toBeUndefined();
        expect(createResponseSeal({ ...key, idempotencyKey }, id).open(sealed)).toBeUndefined();
        expect(createResponseSeal(key, otherId).open(sealed)).toBeUndefined();
      }),
    );
  });

  it("does not open if a bit is changed or a part is missing", () => {
    fc.assert(
      fc.property(secrets, id, stored, fc.nat(), fc.nat(7), (key, id, stored, at, bit) => {
        const seal = createResponseSeal(key, id);
        const sealed = seal.seal(stored);
        const index = at % sealed.length;
        const changed = Buffer.from(sealed);
        changed[index] = (sealed[index] as number) ^ (1 << bit);
        expect(seal.open(changed)).toBeUndefined();
        expect(seal.open(sealed.subarray(0, index))).toBeUndefined();
        expect(seal.open(sealed.subarray(index + 1))).toBeUndefined();
      }),
    );
  });

  it("differs each time and reveals none of its content", () => {
    const key = "lk_prv_02wPAkn1mHXvAAyvJYd2tA3qPzD0Yt6LHr1bWfGx8EoSkVnUZcI5jM7T4e2Qw";
    const stored = { fingerprint: Buffer.alloc(32), response: Buffer.from(key) };
    const callSecrets = { apiKey: "the caller's key", idempotencyKey: "the call" };
    const seal = createResponseSeal(callSecrets, "00".repeat(32));
    const [one, other] = [seal.seal(stored), seal.seal(stored)];
    expect(one.equals(other)).toBe(false);
    for (let start = 0; start + 4 <= one.length; start++) {
      expect(other.includes(one.subarray(start, start + 4))).toBe(false);
    }
    expect(one.includes(key.slice(0, 4))).toBe(false);
  });
});

describe("responseId", () => {
  it("is 64 hex digits and equal for the same call", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (caller, method, key) => {
        expect(responseId(caller, method, key)).toMatch(/^[0-9a-f]{64}$/);
        expect(responseId(caller, method, key)).toBe(responseId(caller, method, key));
      }),
    );
  });

  it("differs by caller, method or key, without ambiguous concatenation", () => {
    const part = fc.string({ unit: fc.constantFrom("a", "/", "\0"), maxLength: 4 });
    const parts = fc.tuple(part, part, part);
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const isSame = one.every((text, at) => text === other[at]);
        expect(responseId(...one) === responseId(...other)).toBe(isSame);
      }),
    );
  });
});
