import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { decodeBase62, encodeBase62 } from "../src/base62.js";
import { newId } from "../src/ids.js";
import { createKeyring, makeKey, parseKey } from "../src/keys.js";

const kind = fc.constantFrom("prv", "pub", "mgt", "ses", "non");
const id = fc.uuid();

describe("base 62", () => {
  it("reads back every number that it wrote", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const text = encodeBase62(Buffer.from(bytes), 22);
        expect(text).toMatch(/^[0-9A-Za-z]{22}$/);
        expect(decodeBase62(text, 16)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("refuses a number that is too large, and what is no number", () => {
    expect(decodeBase62("z".repeat(22), 16)).toBeUndefined();
    expect(decodeBase62("00-00", 16)).toBeUndefined();
    expect(decodeBase62("00é00", 16)).toBeUndefined();
  });
});

describe("a key", () => {
  it("tells its kind and the id that it belongs to", () => {
    fc.assert(
      fc.property(kind, id, (kind, id) => {
        expect(parseKey(makeKey(kind, id))).toEqual({ kind, id });
      }),
    );
  });

  it("is at most 100 letters, digits and underscores", () => {
    expect(makeKey("mgt", newId(Date.now()))).toMatch(/^lk_mgt_[A-Za-z0-9]{61}$/);
  });

  it("is a different one each time", () => {
    const owner = newId(Date.now());
    expect(makeKey("prv", owner)).not.toBe(makeKey("prv", owner));
  });

  it("is refused when any one character is mistyped", () => {
    fc.assert(
      fc.property(kind, id, fc.nat(67), fc.string({ minLength: 1, maxLength: 1 }), (...drawn) => {
        const [kind, id, at, typo] = drawn;
        const key = makeKey(kind, id);
        fc.pre(key[at] !== typo);
        expect(parseKey(key.slice(0, at) + typo + key.slice(at + 1))).toBeUndefined();
      }),
    );
  });

  it("is never read out of other text", () => {
    fc.assert(fc.property(fc.string(), (text) => parseKey(text) === undefined));
    expect(parseKey(makeKey("prv", newId(0)).slice(0, -1))).toBeUndefined();
    expect(parseKey(` ${makeKey("prv", newId(0))}`)).toBeUndefined();
  });
});

describe("a keyring", () => {
  const key = makeKey("prv", newId(Date.now()));

  it("matches the key that was hashed and no other", () => {
    const keyring = createKeyring();
    const stored = keyring.hash(key);
    expect(keyring.matches(key, stored)).toBe(true);
    expect(keyring.matches(makeKey("prv", newId(Date.now())), stored)).toBe(false);
    expect(keyring.matches(key, new Uint8Array(0))).toBe(false);
  });

  it("needs the pepper to match what was hashed with it", () => {
    const stored = createKeyring(["salt of the earth"]).hash(key);
    expect(createKeyring(["salt of the earth"]).matches(key, stored)).toBe(true);
    expect(createKeyring(["another"]).matches(key, stored)).toBe(false);
    expect(createKeyring().matches(key, stored)).toBe(false);
  });

  it("still matches hashes of the peppers that come later in the list", () => {
    const bare = createKeyring().hash(key);
    const old = createKeyring(["old"]).hash(key);
    const rotated = createKeyring(["new", "old", ""]);
    expect(rotated.matches(key, old)).toBe(true);
    expect(rotated.matches(key, bare)).toBe(true);
    expect(rotated.hash(key)).toEqual(createKeyring(["new"]).hash(key));
    expect(rotated.hashes(key)).toContainEqual(old);
  });
});

describe("an id", () => {
  it("is a UUID of version 7 that sorts by the moment it was made", () => {
    expect(newId(Date.now())).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
    expect(newId(1_000) < newId(1_001)).toBe(true);
  });
});
