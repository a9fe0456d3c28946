import { expect, it } from "@jest/globals";
import { type HasSourceRecord, sourceRecord } from "../../../src/store/port/records.js";
import { cacheEncoded } from "../../../src/transport/codec/encoded-cache.js";

/** A response that shows a record. */
function answerOf(id: string, version: number, lastUsedAt?: number): HasSourceRecord {
  return { [sourceRecord]: { id, version, lastUsedAt } };
}

/** Encodes successive responses as 1, 2, 3. */
function counting() {
  const encoded: object[] = [];
  const encode = cacheEncoded((answer) => Buffer.from(`${encoded.push(answer)}`));
  return { encoded, encode };
}

function repeat(count: number, work: () => void): void {
  for (let done = 0; done < count; done++) {
    work();
  }
}

it("encodes a frequently read response only a few times", () => {
  const { encoded, encode } = counting();
  repeat(100, () => encode(answerOf("a", 1)));
  expect(encoded.length).toBeLessThan(10);
});

it("caches by record and version", () => {
  const { encode } = counting();
  repeat(100, () => encode(answerOf("a", 1)));
  const kept = encode(answerOf("a", 1));
  expect(encode(answerOf("a", 1))).toBe(kept);
  expect(encode(answerOf("a", 2))).not.toBe(kept);
  expect(encode(answerOf("b", 1))).not.toBe(kept);
});

it("does not reuse a cached response after the record was used again", () => {
  const { encode } = counting();
  repeat(100, () => encode(answerOf("a", 1, 5)));
  const kept = encode(answerOf("a", 1, 5));
  expect(encode(answerOf("a", 1, 5))).toBe(kept);
  expect(encode(answerOf("a", 1, 6))).not.toBe(kept);
});

it("caches a copy that does not retain a shared buffer", () => {
  const { encode } = counting();
  repeat(100, () => encode(answerOf("a", 1)));
  const kept = encode(answerOf("a", 1));
  expect(kept.buffer.byteLength).toBe(kept.length);
});

it("keeps the most recently read responses", () => {
  const encode = cacheEncoded(() => Buffer.alloc(1024 * 1024));
  const ask = (id: string) => encode(answerOf(id, 1));
  for (let id = 0; id < 40; id++) {
    repeat(10, () => ask(String(id)));
  }
  const [latest, first] = [ask("39"), ask("0")];
  expect(ask("39")).toBe(latest);
  expect(ask("0")).not.toBe(first);
});

it("encodes a response without a record each time", () => {
  const { encoded, encode } = counting();
  repeat(100, () => encode({}));
  expect(encoded).toHaveLength(100);
});
