import { describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import {
  createAuthenticate,
  createAuthenticateMany,
  createFindClaimedOwner,
} from "../../src/auth/authenticate.js";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { parseKey } from "../../src/contract/key-format.js";
import { keyFingerprint, keyTypeOf } from "../../src/contract/key-text.js";
import { readBase62, readDigits, writeBase62 } from "../../src/lib/base62.js";
import { fillRandom } from "../../src/lib/bytes.js";
import { idFromBytes, idToBytes, newId } from "../../src/lib/uuid.js";
import { isId } from "../../src/lib/uuid-text.js";
import type { Store } from "../../src/store/port/store.js";

const type = fc.constantFrom("prv", "pub", "mgt", "ses", "non");
const id = fc.uuid();

describe("base 62", () => {
  /** Encodes a number, and expects the bytes on either side not to change. */
  function encode(bytes: Uint8Array, width: number): string {
    const target = Buffer.from("-".repeat(width + 2));
    writeBase62(Buffer.from(bytes), target, 1, width + 1);
    const text = target.toString("latin1");
    expect(text).toMatch(/^-[0-9A-Za-z]+-$/);
    return text.slice(1, -1);
  }

  const widths = [
    [4, 6],
    [16, 22],
    [24, 33],
  ] as const;

  it.each(widths)("round-trips every number of %i bytes", (size, width) => {
    const number = fc.uint8Array({ minLength: size, maxLength: size });
    fc.assert(
      fc.property(number, (bytes) => {
        const read = Buffer.alloc(size, 0xaa);
        expect(readBase62(`-${encode(bytes, width)}-`, 1, width + 1, read)).toBe(true);
        expect(read).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it.each(widths)("encodes numbers of %i bytes like a reference implementation", (size, width) => {
    const number = fc.uint8Array({ minLength: size, maxLength: size });
    const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const edges = [[new Uint8Array(size)], [new Uint8Array(size).fill(0xff)]] as [Uint8Array][];
    fc.assert(
      fc.property(number, (bytes) => {
        let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
        let text = "";
        for (let place = 0; place < width; place++) {
          text = alphabet.charAt(Number(rest % 62n)) + text;
          rest /= 62n;
        }
        expect(encode(bytes, width)).toBe(text);
      }),
      { examples: edges },
    );
  });

  it("reads a few digits as a number", () => {
    expect(readDigits("--0000A1--", 2, 8)).toBe(10 * 62 + 1);
    expect(readDigits("zzzzzz", 0, 6)).toBe(62 ** 6 - 1);
    expect(readDigits("00-000", 0, 6)).toBeLessThan(0);
    expect(readDigits("000", 0, 6)).toBeLessThan(0);
  });

  it("refuses a number that is too large, and text that is not a number", () => {
    const refuses = (text: string) => !readBase62(text, 0, text.length, Buffer.alloc(16));
    expect(refuses("z".repeat(22))).toBe(true);
    expect(refuses("7n42DGM5Tflk9n8mt7Fhc8")).toBe(true);
    expect(refuses("7n42DGM5Tflk9n8mt7Fhc7")).toBe(false);
    expect(refuses("00-00")).toBe(true);
    expect(refuses("00é00")).toBe(true);
    expect(refuses("00\u010000")).toBe(true);
  });
});

describe("a key", () => {
  it("has a secret with uniformly distributed digits", () => {
    const counts = new Map<string, number>();
    const keys = 20_000;
    const one = newId(0);
    for (let count = 0; count < keys; count++) {
      for (const digit of generateKey("prv", one).slice(29, 62)) {
        counts.set(digit, (counts.get(digit) ?? 0) + 1);
      }
    }
    const expected = (keys * 33) / 62;
    // Seven standard deviations, so chance alone cannot fail this.
    const tolerance = 7 * Math.sqrt(expected);
    expect(counts.size).toBe(62);
    for (const count of counts.values()) {
      expect(Math.abs(count - expected)).toBeLessThan(tolerance);
    }
  });

  it("contains its type and the id of its owner", () => {
    fc.assert(
      fc.property(type, id, (type, id) => {
        expect(parseKey(generateKey(type, id))).toEqual({ type, id });
      }),
    );
  });

  it("has a fingerprint of its type and the end of its id", () => {
    const type = fc.constantFrom("private", "public", "management");
    fc.assert(
      fc.property(type, id, (type, id) => {
        const key = generateKey(keyTypeOf(type), id);
        expect(keyFingerprint(type, id)).toBe(`${key.slice(0, 7)}…${key.slice(25, 29)}`);
      }),
    );
  });

  it("is at most 100 letters, digits and underscores", () => {
    expect(generateKey("mgt", newId(Date.now()))).toMatch(/^lk_mgt_[A-Za-z0-9]{61}$/);
  });

  it("is different each time", () => {
    const owner = newId(Date.now());
    expect(generateKey("prv", owner)).not.toBe(generateKey("prv", owner));
  });

  it("is refused with any one character mistyped", () => {
    fc.assert(
      fc.property(type, id, fc.nat(67), fc.string({ minLength: 1, maxLength: 1 }), (...drawn) => {
        const [type, id, at, typo] = drawn;
        const key = generateKey(type, id);
        fc.pre(key[at] !== typo);
        expect(parseKey(key.slice(0, at) + typo + key.slice(at + 1))).toBeUndefined();
      }),
    );
  });

  it("is never parsed from other text", () => {
    fc.assert(fc.property(fc.string(), (text) => parseKey(text) === undefined));
    expect(parseKey(generateKey("prv", newId(0)).slice(0, -1))).toBeUndefined();
    expect(parseKey(` ${generateKey("prv", newId(0))}`)).toBeUndefined();
  });
});

describe("a keyring", () => {
  const key = generateKey("prv", newId(Date.now()));

  it("matches only the key that was hashed", () => {
    const keyring = createKeyring();
    const stored = keyring.hash(key);
    expect(keyring.matches(key, stored)).toBe(true);
    expect(keyring.matches(generateKey("prv", newId(Date.now())), stored)).toBe(false);
    expect(keyring.matches(key, new Uint8Array(0))).toBe(false);
  });

  it("compares full hashes in constant time, equal or not", () => {
    const crypto = jest.requireActual<typeof import("node:crypto")>("node:crypto");
    const keyring = createKeyring();
    const [right, wrong] = [key, generateKey("prv", newId(Date.now()))].map(keyring.hash);
    const compare = jest.spyOn(crypto, "timingSafeEqual");
    try {
      for (const hash of [right, wrong] as [Uint8Array, Uint8Array]) {
        compare.mockClear();
        const results = [keyring.matches(key, hash), keyring.find(key, [{ hash }]) !== undefined];
        expect(results).toEqual([hash === right, hash === right]);
        expect(compare.mock.calls.map(([, stored]) => stored)).toEqual([hash, hash]);
        expect(compare.mock.results.map(({ value }) => value)).toEqual(results);
      }
    } finally {
      compare.mockRestore();
    }
  });

  it("requires the pepper of the hash", () => {
    const stored = createKeyring(["a pepper of one key"]).hash(key);
    expect(createKeyring(["a pepper of one key"]).matches(key, stored)).toBe(true);
    expect(createKeyring(["another"]).matches(key, stored)).toBe(false);
    expect(createKeyring().matches(key, stored)).toBe(false);
  });

  it("matches hashes of older peppers", () => {
    const unpeppered = createKeyring().hash(key);
    const old = createKeyring(["old"]).hash(key);
    const rotated = createKeyring(["new", "old", ""]);
    expect(rotated.matches(key, old)).toBe(true);
    expect(rotated.matches(key, unpeppered)).toBe(true);
    expect(rotated.hash(key)).toEqual(createKeyring(["new"]).hash(key));
    expect(rotated.hashes(key)).toContainEqual(old);
  });
});

describe("a key from an earlier release", () => {
  const key = "lk_prv_030oVeblwK671ZXTBBRdgQ1fgEi64Pa3W0y7iH6KCyncmGfPlcjZdoG3ZLAPP";

  it("still contains its type and its id", () => {
    expect(parseKey(key)).toEqual({ type: "prv", id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a" });
  });

  it.each([
    ["", "470f53e7b953431473d496e708d0b3c2ef2ecf1e4bada62d9144d91d8ed545bb"],
    ["salt", "05d48f3889a9b0da1bca29132f379e737b2df6d2523cce451ba70370ad60ed63"],
  ])("still matches its hash under the pepper %j", (pepper, stored) => {
    const keyring = createKeyring([pepper]);
    expect(keyring.matches(key, Buffer.from(stored, "hex"))).toBe(true);
    expect(Buffer.from(keyring.hash(key)).toString("hex")).toBe(stored);
  });
});

describe("an id", () => {
  it("is a UUID of version 7 that sorts by creation time", () => {
    expect(newId(Date.now())).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
    expect(newId(1_000) < newId(1_001)).toBe(true);
  });

  it("is different each time", () => {
    const ids = Array.from({ length: 5_000 }, () => newId(0));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("round-trips through bytes at any offset", () => {
    fc.assert(
      fc.property(id, fc.nat(9), (id, start) => {
        const bytes = Buffer.concat([Buffer.alloc(start, 0xff), idToBytes(id), Buffer.alloc(1)]);
        expect(idFromBytes(bytes, start)).toBe(id);
        expect(isId(id)).toBe(true);
      }),
    );
  });
});

describe("random bytes", () => {
  it("are used once each, as many as requested", () => {
    const values = Array.from({ length: 1_000 }, () => {
      const bytes = Buffer.alloc(24);
      fillRandom(bytes);
      return bytes.toString("hex");
    });
    expect(new Set(values).size).toBe(values.length);
  });

  it("do not change bytes outside the target", () => {
    const bytes = Buffer.alloc(48);
    fillRandom(bytes.subarray(12, 36));
    expect(bytes.subarray(0, 12).equals(Buffer.alloc(12))).toBe(true);
    expect(bytes.subarray(36).equals(Buffer.alloc(12))).toBe(true);
  });
});

describe("a malformed key", () => {
  /** A store that counts its calls. */
  function createCountingStore() {
    let calls = 0;
    const count = () => {
      calls++;
      return undefined;
    };
    const part = new Proxy({}, { get: () => count });
    const store = { applications: part, sessions: part, now: count } as unknown as Store;
    return { store, calls: () => calls };
  }

  const validKey = fc
    .constantFrom("prv", "pub", "mgt", "ses")
    .map((type) => generateKey(type as "prv", newId(Date.now())));
  const anyLetter = fc.string({ minLength: 1, maxLength: 1, unit: "binary-ascii" });
  const malformed = fc.oneof(
    fc
      .tuple(validKey, fc.nat({ max: 67 }), anyLetter)
      .map(([key, at, letter]) => key.slice(0, at) + letter + key.slice(at + 1)),
    fc.tuple(validKey, fc.nat({ max: 67 })).map(([key, at]) => key.slice(0, at)),
    fc.tuple(validKey, fc.string({ minLength: 1 })).map(([key, more]) => key + more),
    fc.tuple(validKey, fc.string({ minLength: 1 })).map(([key, more]) => more + key),
    validKey.map((key) => key.toUpperCase()),
    // A nonce is not a key.
    fc.constant("non").map((type) => generateKey(type as "non", newId(Date.now()))),
    fc.string(),
  );

  it("never reaches the store", async () => {
    const { store, calls } = createCountingStore();
    // With imported keys enabled, other texts are looked up as well.
    const keyring = createKeyring();
    const authenticate = createAuthenticate(store, keyring, "held");
    const authenticateMany = createAuthenticateMany(store, keyring, "held");
    const findClaimedOwner = createFindClaimedOwner(store, keyring);
    await fc.assert(
      fc.asyncProperty(malformed, async (text) => {
        fc.pre(text.startsWith("lk_non_") || parseKey(text) === undefined);
        expect(await authenticate(text)).toBeUndefined();
        expect(await authenticateMany([text])).toEqual([undefined]);
        expect(await findClaimedOwner(text)).toBeUndefined();
        expect(calls()).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it("is distinguished from a well-formed key", async () => {
    const { store, calls } = createCountingStore();
    await createAuthenticate(store, createKeyring(), "held")(generateKey("prv", newId(Date.now())));
    expect(calls()).toBe(1);
  });
});
