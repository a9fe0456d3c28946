import { create, type DescMessage } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { cacheEncoded } from "../../../src/transport/codec/encoded-cache.js";

/** A response with this version of an application. */
function createResponse(id: string, version: number, lastUsedAt?: number): Application {
  return create(ApplicationSchema, {
    id,
    version: String(version),
    ...(lastUsedAt !== undefined && { lastUsedAt: timestampFromMs(lastUsedAt) }),
  });
}

/** An encoder that encodes successive responses as 1, 2, 3. */
function createCountingEncoder(schema: DescMessage = ApplicationSchema) {
  const encoded: object[] = [];
  const encode = cacheEncoded(schema, (response) => Buffer.from(`${encoded.push(response)}`));
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

it("caches by application and version", () => {
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
  const afterUse = encode(createResponse("a", 1, 6));
  expect(afterUse).not.toBe(cached);
  // The new response takes the place of the old one at once.
  expect(encode(createResponse("a", 1, 6))).toEqual(afterUse);
});

it("caches a copy that does not retain a shared buffer", () => {
  const { encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1)));
  const cached = encode(createResponse("a", 1));
  expect(cached.buffer.byteLength).toBe(cached.length);
});

it("keeps the most recently read responses", () => {
  const encode = cacheEncoded(ApplicationSchema, () => Buffer.alloc(1024 * 1024));
  const encodeRecord = (id: string) => encode(createResponse(id, 1));
  for (let id = 0; id < 40; id++) {
    repeat(10, () => encodeRecord(String(id)));
  }
  const [latest, first] = [encodeRecord("39"), encodeRecord("0")];
  expect(encodeRecord("39")).toBe(latest);
  expect(encodeRecord("0")).not.toBe(first);
});

it("encodes a response with a key each time", () => {
  const { encoded, encode } = createCountingEncoder();
  repeat(100, () => encode({ ...createResponse("a", 1), key: "secret" }));
  expect(encoded).toHaveLength(100);
});

it("encodes a response of another type each time", () => {
  const { encoded, encode } = createCountingEncoder(EmptySchema);
  repeat(100, () => encode(create(EmptySchema)));
  expect(encoded).toHaveLength(100);
});
