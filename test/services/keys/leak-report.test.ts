import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { generateKey } from "../../../src/auth/keys.js";
import { parseSigningKeys } from "../../../src/config/secret-scanning.js";
import { newId } from "../../../src/lib/uuid.js";
import {
  createFeedback,
  isSignedBy,
  readLeakedTokens,
} from "../../../src/services/keys/leak-report.js";
import { createSecretScanner } from "./secret-scanner.js";

const scanner = createSecretScanner();
const keys = parseSigningKeys(Buffer.from(JSON.stringify({ public_keys: [scanner.publicKey] })));
const readReport = (report: unknown) => readLeakedTokens(Buffer.from(JSON.stringify(report)));
const isSigned = (headers: Record<string, string>, body: Uint8Array) =>
  isSignedBy(keys, new Headers(headers), body);

describe("the signature of a report", () => {
  it("matches the example in the documentation of GitHub", () => {
    const key = [
      "-----BEGIN PUBLIC KEY-----",
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9MJJHnMfn2+H4xL4YaPDA4RpJqUq",
      "kCmRCBnYERxZanmcpzQSXs1X/AljlKkbJ8qpVIW4clayyef9gWhFbNHWAA==",
      "-----END PUBLIC KEY-----",
      "",
    ].join("\n");
    const id = "90a421169f0a406205f1563a953312f0be898d3c7b6c06b681aa86a874555f4a";
    const file = { public_keys: [{ key_identifier: id, key, is_current: true }] };
    const headers = new Headers({
      "github-public-key-identifier": id,
      "github-public-key-signature":
        "MEUCIQDKZokqnCjrRtw0tni+2Ltvl/uiMJ1EGumEsp1BsNr32AIgQY1YXD2nlj+XNfGK4rBfkMJ1JDOQcYXxa2sY8FNkrKc=",
    });
    const body = '[{"token":"some_token","type":"some_type","url":"some_url"}]';
    const published = parseSigningKeys(Buffer.from(JSON.stringify(file)));
    expect(isSignedBy(published, headers, Buffer.from(body))).toBe(true);
    expect(isSignedBy(published, headers, Buffer.from(`${body}\n`))).toBe(false);
  });

  it("is valid for the signed bytes only", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (body, other) => {
        const headers = scanner.headersFor(body);
        expect(isSigned(headers, body)).toBe(true);
        expect(isSigned(headers, other)).toBe(Buffer.compare(body, other) === 0);
      }),
    );
  });

  it("is not valid if it is any other text, and never throws", () => {
    const body = Buffer.from("[]");
    const { "github-public-key-signature": signature = "", ...headers } = scanner.headersFor(body);
    const base64 = fc
      .uint8Array({ maxLength: 100 })
      .map((it) => Buffer.from(it).toString("base64"));
    const mutated = fc
      .tuple(fc.nat(signature.length - 3), fc.constantFrom(..."ABab01+/ !-_"))
      .map(([at, char]) => signature.slice(0, at) + char + signature.slice(at + 1));
    const text = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((it) => String.fromCharCode(it)),
    });
    fc.assert(
      fc.property(fc.oneof(base64, mutated, text), (other) => {
        const given = { ...headers, "github-public-key-signature": other };
        expect(isSigned(given, body)).toBe(other.trim() === signature);
      }),
    );
  });

  it("is not valid by an unknown key, or without an identifier", () => {
    const body = Buffer.from("[]");
    const { "github-public-key-identifier": _, ...withoutId } = scanner.headersFor(body);
    expect(isSigned(withoutId, body)).toBe(false);
    expect(isSigned({ ...withoutId, "github-public-key-identifier": "other" }, body)).toBe(false);
    expect(isSigned(createSecretScanner().headersFor(body), body)).toBe(false);
    expect(isSigned({ ...scanner.headersFor(body), "github-public-key-signature": "" }, body)).toBe(
      false,
    );
  });
});

describe("a report", () => {
  it("is read item by item, without those that have no token", () => {
    const items = [
      { token: "a", type: "t", url: "", new: {} },
      { token: "b", type: 1 },
    ];
    const ignored = [null, 1, "token", [], {}, { token: null }, { token: {} }];
    expect(readReport([...ignored, ...items])).toEqual([
      { token: "a", type: "t" },
      { token: "b", type: "" },
    ]);
  });

  it("keeps the other tokens if one item has duplicate names, invalid UTF-8 or is deeply nested", () => {
    const token = `{"token":"a"}`;
    const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    for (const item of ['{"token":"b","token":"c"}', '{"token":"\xff"}', nested]) {
      const tokens = readLeakedTokens(Buffer.from(`[${token},${item},${token}]`, "latin1"));
      expect([tokens[0], tokens.at(-1)]).toEqual([
        { token: "a", type: "" },
        { token: "a", type: "" },
      ]);
    }
    expect(readReport(Array(10_000).fill({ token: "a" }))).toHaveLength(10_000);
  });

  it("is refused if it is not an array", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const read = () => readReport(value);
        if (Array.isArray(value)) {
          expect(read).not.toThrow();
        } else {
          expect(read).toThrow("must be a JSON array of leaked tokens");
        }
      }),
    );
  });
});

describe("the feedback to a report", () => {
  it("labels keys, also invalid ones, and known imported keys as true positives", () => {
    const key = generateKey("prv", newId(0));
    const labels = (tokens: string[], known: string[] = []) =>
      createFeedback(
        tokens.map((token) => ({ token, type: "latchkey" })),
        new Set(known),
      ).map((item) => Object(item).label);
    expect(labels([key, `${key.slice(0, -1)}!`, "sk_live_1"])).toEqual([
      "true_positive",
      "false_positive",
      "false_positive",
    ]);
    expect(labels(["sk_live_1"], ["sk_live_1"])).toEqual(["true_positive"]);
  });

  it("contains the hash of each token, not the token", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8 }), fc.string(), (token, type) => {
        const [item] = createFeedback([{ token, type }], new Set());
        const hash = createHash("sha256").update(token).digest("hex");
        expect(item).toEqual({ token_hash: hash, token_type: type, label: "false_positive" });
      }),
    );
  });
});
