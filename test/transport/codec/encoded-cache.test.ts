import { expect, it } from "@jest/globals";
import { type HasSourceRecord, sourceRecord } from "../../../src/store/port/records.js";
import { cacheEncoded } from "../../../src/transport/codec/encoded-cache.js";

/** A response with this version of a record. */
function createResponse(id: string, version: number, lastUsedAt?: number): HasSourceRecord {
  return { [sourceRecord]: { id, version, lastUsedAt } };
}

/** An encoder that encodes successive responses as 1, 2, 3. */
function createCountingEncoder() {
  const encoded: object[] = [];
  const encode = cacheEncoded((response) => Buffer.from(`${encoded.push(response)}`));
  return { encoded, encode };
}

function repeat(count: number, run: () => void): void {
  for (let iteration = 0; iteration < count; iteration++) {
    run();
  }
}

it("encodes a frequently read response only a few times", () => {
  const { encoded, encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1)));
  expect(encoded.length).toBeLessThan(10);
});

it("caches by record and version", () => {
  const { encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1)));
  const cached = encode(createResponse("a", 1));
  expect(encode(createResponse("a", 1))).toBe(cached);
  expect(encode(createResponse("a", 2))).not.toBe(cached);
  expect(encode(createResponse("b", 1))).not.toBe(cached);
});

it("does not reuse a cached response after the record was used again", () => {
  const { encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1, 5)));
  const cached = encode(createResponse("a", 1, 5));
  expect(encode(createResponse("a", 1, 5))).toBe(cached);
  expect(encode(createResponse("a", 1, 6))).not.toBe(cached);
});

it("caches a copy that does not retain a shared buffer", () => {
  const { encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1)));
  const cached = encode(createResponse("a", 1));
  expect(cached.buffer.byteLength).toBe(cached.length);
});

it("keeps the most recently read responses", () => {
  const encode = cacheEncoded(() => Buffer.alloc(1024 * 1024));
  const encodeRecord = (id: string) => encode(createResponse(id, 1));
  for (let id = 0; id < 40; id++) {
    repeat(10, () => encodeRecord(String(id)));
  }
  const [latest, first] = [encodeRecord("39"), encodeRecord("0")];
  expect(encodeRecord("39")).toBe(latest);
  expect(encodeRecord("0")).not.toBe(first);
});

it("encodes a response without a record each time", () => {
  const { encoded, encode } = createCountingEncoder();
  repeat(100, () => encode({}));
  expect(encoded).toHaveLength(100);
});
