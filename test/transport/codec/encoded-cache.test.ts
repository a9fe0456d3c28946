import { create, type DescMessage } from "@bufbuild/protobuf";
import { EmptySchema, type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import {
  addLastUseToConnectJson,
  createConnectJsonEncoder,
  createJsonOptions,
} from "../../../src/transport/codec/connect-json.js";
import { cacheEncoded } from "../../../src/transport/codec/encoded-cache.js";
import { addLastUseToRestJson, createEncoder } from "../../../src/transport/rest/encode.js";

/** A response with this version of an application. */
function createResponse(id: string, version: number, lastUsedAt?: number): Application {
  return create(ApplicationSchema, {
    id,
    version: String(version),
    ...(lastUsedAt !== undefined && { lastUsedAt: timestampFromMs(lastUsedAt) }),
  });
}

const addLastUse = (encoded: Buffer, lastUse: Timestamp) =>
  Buffer.from(`${encoded} used ${timestampMs(lastUse)}`);

/** An encoder that encodes successive responses as 1, 2, 3. */
function createCountingEncoder(schema: DescMessage = ApplicationSchema) {
  const encoded: object[] = [];
  const encode = cacheEncoded(
    schema,
    (response) => Buffer.from(`${encoded.push(response)}`),
    addLastUse,
  );
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

it("adds the current last use to a cached response", () => {
  const { encoded, encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1, 5)));
  const count = encoded.length;
  expect(encoded.at(-1)).toMatchObject({ id: "a", lastUsedAt: undefined });
  expect(`${encode(createResponse("a", 1, 5))}`).toBe(`${count} used 5`);
  const later = encode(createResponse("a", 1, 6));
  expect(`${later}`).toBe(`${count} used 6`);
  expect(encode(createResponse("a", 1, 6))).toBe(later);
  expect(encoded).toHaveLength(count);
});

it.each([
  ["REST", createEncoder(ApplicationSchema), addLastUseToRestJson],
  [
    "Connect",
    createConnectJsonEncoder(ApplicationSchema, createJsonOptions([], 10)),
    addLastUseToConnectJson,
  ],
])("adds the last use to JSON as the encoder writes it: %s", (_protocol, encode, addLastUse) => {
  for (const at of [0, 1_798_848_000_000, 1_798_848_000_123]) {
    const lastUse = timestampFromMs(at);
    const added = addLastUse(encode(createResponse("ä", 1)), lastUse);
    expect(JSON.parse(`${added}`)).toEqual(JSON.parse(`${encode(createResponse("ä", 1, at))}`));
  }
});

it("caches a copy that does not retain a shared buffer", () => {
  const { encode } = createCountingEncoder();
  repeat(100, () => encode(createResponse("a", 1)));
  const cached = encode(createResponse("a", 1));
  expect(cached.buffer.byteLength).toBe(cached.length);
});

it("keeps the most recently read responses", () => {
  const encode = cacheEncoded(ApplicationSchema, () => Buffer.alloc(1024 * 1024), addLastUse);
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
