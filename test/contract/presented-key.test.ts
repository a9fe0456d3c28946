import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { readPresentedKey } from "../../src/contract/presented-key.js";

const keyHeader = "svc-api-key";
const everywhere = { keyHeader, bearer: true, basic: true };
const headerOnly = { keyHeader, bearer: false };

function read(headers: Record<string, string>, places: Parameters<typeof readPresentedKey>[1]) {
  return readPresentedKey(new Map(Object.entries(headers)), places);
}

const keys = fc.stringMatching(/^lk_prv_[A-Za-z0-9]{1,61}$/);

describe("the key of a request", () => {
  it("is in the key header, whatever Authorization has, if only that header is accepted", () => {
    const property = fc.property(keys, fc.string(), (key, authorization) => {
      expect(read({ [keyHeader]: key, authorization }, headerOnly)).toBe(key);
      expect(read({ authorization }, headerOnly)).toBe("");
    });
    fc.assert(property);
  });

  it("may be a bearer token or the password of Basic", () => {
    const property = fc.property(keys, fc.stringMatching(/^[^:\u0080-\uffff]*$/), (key, user) => {
      const basic = `Basic ${Buffer.from(`${user}:${key}`, "latin1").toString("base64")}`;
      for (const authorization of [`Bearer ${key}`, `bearer  ${key} `, basic]) {
        expect(read({ authorization }, everywhere)).toBe(key);
        expect(read({ authorization, [keyHeader]: key }, everywhere)).toBe(key);
      }
    });
    fc.assert(property);
  });

  it("is ambiguous if both headers carry different keys", () => {
    const property = fc.property(keys, keys, (key, other) => {
      fc.pre(key !== other);
      const authorization = `Bearer ${other}`;
      expect(read({ [keyHeader]: key, authorization }, everywhere)).toBeUndefined();
    });
    fc.assert(property);
  });

  it("is the key header if Authorization carries another kind of credential", () => {
    for (const authorization of ["Bearer eyJhbGciOi.e30.x", "Basic bmFtZTpzZWNyZXQ=", "Digest x"]) {
      expect(read({ [keyHeader]: "lk_prv_a", authorization }, everywhere)).toBe("lk_prv_a");
    }
  });

  it("is never read from a malformed Authorization header", () => {
    for (const authorization of ["lk_prv_a", "Bearer", "Bearer a b", "Basic =", "Basic %", ""]) {
      expect(read({ authorization }, everywhere)).toBe("");
    }
  });

  it("is empty if Basic has no valid password", () => {
    const withoutColon = Buffer.from("lk_prv_a").toString("base64");
    for (const encoded of ["A", "AAAAA", withoutColon]) {
      expect(read({ authorization: `Basic ${encoded}` }, everywhere)).toBe("");
    }
  });

  it("never fails", () => {
    const authorizations = fc.oneof(
      fc.string(),
      fc.stringMatching(/^(Basic|Bearer) [A-Za-z0-9+/]*={0,2}$/),
    );
    const property = fc.property(fc.string(), authorizations, (key, authorization) => {
      const found = read({ [keyHeader]: key, authorization }, everywhere);
      expect(found === undefined || typeof found === "string").toBe(true);
    });
    fc.assert(property);
  });
});
