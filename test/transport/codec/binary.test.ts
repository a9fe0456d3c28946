import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema, StringValueSchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  StreamCheckAccessRequestSchema,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { CreateApplicationRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { OneofValue } from "../../../src/contract/fields.js";
import { services } from "../../../src/contract/methods.js";
import { createBinaryDecoder, encodeBinary } from "../../../src/transport/codec/binary.js";
import { isSupported } from "../../../src/transport/codec/message-fields.js";
import { isRawBody } from "../../../src/transport/rpc/methods.js";
import { messageInits } from "../../support/generators/messages.js";
import { oneofSchema, recursiveSchema } from "../../support/generators/schemas.js";
import { repetitions } from "../../support/jest/suite.js";

// Each property runs for every message of the contract.
fc.configureGlobal({ numRuns: repetitions({ quick: 10, full: 15 }) });
afterAll(() => fc.resetConfigureGlobal());

const schemas = [
  oneofSchema,
  ...new Set(services.flatMap(({ methods }) => methods.flatMap((it) => [it.input, it.output]))),
].filter((schema) => !isRawBody(schema));

/** Whether two messages set different fields of a oneof. */
function chooseDifferently({ oneofs }: DescMessage, one: object, other: object): boolean {
  return oneofs.some(({ localName }) => {
    const cases = [one, other].map((init) => (init as Record<string, OneofValue>)[localName]?.case);
    return !cases.includes(undefined) && cases[0] !== cases[1];
  });
}

const ignoreUnknown = { readUnknownFields: false };
const libraryBytes = (schema: DescMessage, init: object) =>
  Buffer.from(toBinary(schema, create(schema, init as MessageInitShape<DescMessage>)));

/** Types that the fast codecs do not support, each for a different reason, with sample values. */
const unsupported: [DescMessage, object][] = [
  [FileDescriptorProtoSchema, { name: "a.proto", dependency: ["b.proto"] }],
  [HttpBodySchema, { contentType: "text/plain", data: Buffer.from("a") }],
  [StringValueSchema, { value: "a" }],
  [recursiveSchema, { next: { next: {} } }],
  [StructSchema, { fields: { a: { kind: { case: "numberValue", value: 1 } } } }],
  [
    ServerReflectionRequestSchema,
    { host: "a", messageRequest: { case: "listServices", value: "b" } },
  ],
];

it.each(schemas)("the fast codecs support %s", (schema) => {
  expect(isSupported(schema)).toBe(true);
});

it.each(unsupported)("the fast codecs leave %s to the library", (schema) => {
  expect(isSupported(schema)).toBe(false);
});

describe("encoding binary messages", () => {
  it.each(schemas)("encodes a %s and its init shape alike, without unknown fields", (schema) => {
    fc.assert(
      fc.property(messageInits(schema), (init) => {
        const expected = libraryBytes(schema, init);
        const message = create(schema, init as MessageInitShape<DescMessage>);
        message.$unknown = [{ no: 99, wireType: WireType.Varint, data: Uint8Array.of(1) }];
        expect(expected.equals(encodeBinary(schema, init))).toBe(true);
        expect(expected.equals(encodeBinary(schema, message))).toBe(true);
      }),
    );
  });
});

describe("decoding binary messages", () => {
  it.each(schemas)("reads the same message as the library for %s", (schema) => {
    const decode = createBinaryDecoder(schema);
    fc.assert(
      fc.property(messageInits(schema), (init) => {
        const bytes = libraryBytes(schema, init);
        expect(decode(bytes)).toStrictEqual(fromBinary(schema, bytes));
        expect(decode(new Uint8Array(bytes))).toStrictEqual(fromBinary(schema, bytes));
      }),
    );
  });

  it.each(schemas)("merges the parts of a %s", (schema) => {
    const decode = createBinaryDecoder(schema);
    fc.assert(
      fc.property(messageInits(schema), messageInits(schema), (first, second) => {
        fc.pre(!chooseDifferently(schema, first, second));
        const bytes = Buffer.concat([libraryBytes(schema, first), libraryBytes(schema, second)]);
        expect(decode(bytes)).toStrictEqual(fromBinary(schema, bytes));
      }),
    );
  });

  it.each(unsupported)("reads %s with the library", (schema, init) => {
    const bytes = libraryBytes(schema, init);
    expect(createBinaryDecoder(schema)(bytes)).toStrictEqual(fromBinary(schema, bytes));
  });

  it("refuses two fields of a oneof and accepts one twice", () => {
    const decodeChoice = createBinaryDecoder(oneofSchema);
    const encode = (choice: OneofValue) => libraryBytes(oneofSchema, { choice });
    const text = encode({ case: "text", value: "" });
    const number = encode({ case: "wholeNumber", value: 0 });
    expect(() => decodeChoice(Buffer.concat([text, number]))).toThrow(
      "whole_number: cannot be sent with text: send only one of text or whole_number",
    );
    expect(decodeChoice(Buffer.concat([text, text]))).toMatchObject({
      choice: { case: "text", value: "" },
    });
  });

  const decode = createBinaryDecoder(StreamCheckAccessRequestSchema);
  const write = () => new BinaryWriter();
  const knownField = write().tag(1, WireType.LengthDelimited).string("a").finish();
  const groups = (depth: number) => {
    const writer = write();
    for (let level = 0; level < depth; level++) {
      writer.tag(9, WireType.StartGroup);
    }
    writer.tag(3, WireType.Varint).int32(1);
    for (let level = 0; level < depth; level++) {
      writer.tag(9, WireType.EndGroup);
    }
    return writer.finish();
  };

  it.each([
    ["a number", write().tag(99, WireType.Varint).int64(-1n).finish()],
    ["32 bits", write().tag(99, WireType.Bit32).fixed32(1).finish()],
    ["64 bits", write().tag(99, WireType.Bit64).fixed64(1n).finish()],
    ["a string", write().tag(536_870_911, WireType.LengthDelimited).string("\u0000").finish()],
    ["a group", groups(1)],
    ["99 nested groups", groups(99)],
  ])("skips unknown %s", (_, unknown) => {
    const bytes = Buffer.concat([unknown, knownField, unknown]);
    expect(decode(bytes)).toStrictEqual(
      create(StreamCheckAccessRequestSchema, { correlationId: "a" }),
    );
    expect(decode(bytes)).toStrictEqual(
      fromBinary(StreamCheckAccessRequestSchema, bytes, ignoreUnknown),
    );
  });

  it.each([
    ["a truncated string", [0x0a, 5, 0x61]],
    ["a string longer than 4 GB", [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ["a string that is not UTF-8", [0x0a, 2, 0xc3, 0x28]],
    ["a string with an unpaired surrogate", [0x0a, 3, 0xed, 0xa0, 0x80]],
    ["a string with an overlong UTF-8 encoding", [0x0a, 2, 0xc0, 0x80]],
    ["a nested message longer than its parent", [0x12, 5, 0x0a, 1, 0x61]],
    ["a string longer than its message", [0x12, 3, 0x0a, 2, 0x61, 0x62]],
    ["field number 0", [0x02, 0]],
    ["an unknown wire type", [0x0e, 0]],
    ["a truncated tag", [0x8a]],
    ["a tag over 32 bits", [0x8a, 0x80, 0x80, 0x80, 0x10, 0]],
    ["a tag of six bytes", [0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 0]],
    ["a varint of eleven bytes", [0x12, 14, 0x1a, 12, ...Array(10).fill(0x80), 0]],
    ["an end of a group without a start", [0x9c, 0x06]],
    ["a group with the end tag of another", [0x9b, 0x06, 0xa4, 0x06]],
    ["a group without an end", [0x9b, 0x06]],
    ["too many nested groups", [...groups(101)]],
  ])("refuses %s", (_, bytes) => {
    expect(() => decode(Uint8Array.from(bytes))).toThrow();
  });

  it.each([
    ["correlation_id", [0x08, 1, 0x61]],
    ["check", [0x10, 0]],
  ])("refuses a number for %s instead of reading it as a length", (name, bytes) => {
    expect(() => decode(Uint8Array.from(bytes))).toThrow(`${name} has wire type 0, not 2`);
  });

  /** A pair of `metadata` with these bytes. */
  const pairOf = (bytes: readonly number[]) => [0x5a, bytes.length, ...bytes];
  const decodeCreate = (bytes: readonly number[]) =>
    createBinaryDecoder(CreateApplicationRequestSchema)(Uint8Array.from(bytes));

  it.each([
    ["a number as key", pairOf([0x08, 1]), "key has wire type 0, not 2"],
    ["a number as value", pairOf([0x0a, 1, 0x61, 0x10, 1]), "value has wire type 0, not 2"],
    ["a number as pair", [0x58, 1], "metadata has wire type 0, not 2"],
    ["a key longer than its pair", pairOf([0x0a, 5, 0x61]), "longer than the rest"],
    ["a key that is not UTF-8", pairOf([0x0a, 2, 0xc3, 0x28]), ""],
  ])("refuses a map with %s", (_, bytes, message) => {
    expect(() => decodeCreate([...bytes, 0x5a, 0])).toThrow(message);
  });

  it("reads absent keys and values as empty, and the last of duplicate keys", () => {
    const bytes = [...pairOf([]), ...pairOf([0x0a, 1, 0x61]), ...pairOf([0x12, 1, 0x62])];
    expect(decodeCreate(bytes)).toMatchObject({ metadata: { "": "b", a: "" } });
  });

  it.each([
    [[1], true],
    [[2], true],
    [[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], true],
    [[0x80, 0], false],
  ])("reads the boolean %j as %s", (bytes, isTrue) => {
    const message = createBinaryDecoder(WatchCredentialsResponseSchema)(
      Uint8Array.from([0x10, ...bytes]),
    );
    expect(message).toMatchObject({ reset: isTrue });
  });
});

it.each([
  ["rules", 1_000, (count: number) => ({ rules: Array.from({ length: count }, () => ({})) })],
  [
    "rules[1].permissions",
    50,
    (count: number) => ({ rules: [{}, { permissions: Array(count).fill("token:read") }] }),
  ],
  [
    "metadata",
    50,
    (count: number) => ({
      metadata: Object.fromEntries(Array.from({ length: count }, (_, index) => [index, "a"])),
    }),
  ],
])("refuses more %s than the limit of %d before it reads them", (field, limit, createInit) => {
  const schema = CreateApplicationRequestSchema;
  const decode = createBinaryDecoder(schema);
  const within = libraryBytes(schema, createInit(limit));
  expect(decode(within)).toStrictEqual(fromBinary(schema, within));
  // A decoder that reads on finds a truncated tag.
  const over = Buffer.concat([libraryBytes(schema, createInit(limit + 1)), Buffer.from([0x8a])]);
  expect(() => decode(over)).toThrow(`${field}: must contain no more than ${limit} `);
});
