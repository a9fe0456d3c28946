import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createFindNamed, createIdentify, createIdentifyMany } from "../src/identify.js";
import { newId } from "../src/ids.js";
import { createKeyring, makeKey, parseKey } from "../src/keys.js";
import type { Store } from "../src/store/store.js";

/** A store that counts whatever is asked of it. */
function createCountingStore() {
  let asked = 0;
  const count = () => {
    asked++;
    return undefined;
  };
  const part = new Proxy({}, { get: () => count });
  const store = { applications: part, sessions: part, now: count } as unknown as Store;
  return { store, asked: () => asked };
}

const good = fc
  .constantFrom("prv", "pub", "mgt", "ses")
  .map((kind) => makeKey(kind as "prv", newId(Date.now())));
const anyLetter = fc.string({ minLength: 1, maxLength: 1, unit: "binary-ascii" });
const spoiled = fc.oneof(
  fc
    .tuple(good, fc.nat({ max: 67 }), anyLetter)
    .map(([key, at, letter]) => key.slice(0, at) + letter + key.slice(at + 1)),
  fc.tuple(good, fc.nat({ max: 67 })).map(([key, at]) => key.slice(0, at)),
  fc.tuple(good, fc.string({ minLength: 1 })).map(([key, more]) => key + more),
  fc.tuple(good, fc.string({ minLength: 1 })).map(([key, more]) => more + key),
  good.map((key) => key.toUpperCase()),
  // A nonce is no key.
  fc.constant("non").map((kind) => makeKey(kind as "non", newId(Date.now()))),
  fc.string(),
);

describe("a key that cannot be one", () => {
  it("never reaches the store", async () => {
    const { store, asked } = createCountingStore();
    // Where keys that were made elsewhere are accepted, texts that may be such a key are looked up.
    const keyring = createKeyring();
    const identify = createIdentify(store, keyring);
    const identifyMany = createIdentifyMany(store, keyring);
    const findNamed = createFindNamed(store, keyring);
    await fc.assert(
      fc.asyncProperty(spoiled, async (text) => {
        fc.pre(text.startsWith("lk_non_") || parseKey(text) === undefined);
        expect(await identify(text)).toBeUndefined();
        expect(await identifyMany([text])).toEqual([undefined]);
        expect(await findNamed(text)).toBeUndefined();
        expect(asked()).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it("is told from one that can be", async () => {
    const { store, asked } = createCountingStore();
    await createIdentify(store, createKeyring())(makeKey("prv", newId(Date.now())));
    expect(asked()).toBe(1);
  });
});
