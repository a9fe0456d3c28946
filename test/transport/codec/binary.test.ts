import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  DurationSchema,
  FileDescriptorProtoSchema,
  StringValueSchema,
  StructSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { services } from "../../../src/contract/methods.js";
import { createBinaryDecoder } from "../../../src/transport/codec/binary-decoder.js";
import { createBinaryEncoder } from "../../../src/transport/codec/binary-encoder.js";
import { isSupported } from "../../../src/transport/codec/message-fields.js";
import { durations, messageInits } from "../../support/generators/messages.js";
import { createSchema, fields, recursiveSchema } from "../../support/generators/schemas.js";
import { repetitions } from "../../support/jest/suite.js";

// Each property runs for every message of the contract.
fc.configureGlobal({ numRuns: repetitions({ quick: 10, full: 30 }) });

const schemas = [
  ...new Set(services.flatMap(({ methods }) => methods.flatMap((it) => [it.input, it.output]))),
];

const ignoreUnknown = { readUnknownFields: false };
const hex = (bytes: Buffer) => bytes.toString("hex");
const libraryBytes = (schema: DescMessage, init: object) =>
  Buffer.from(toBinary(schema, create(schema, init as MessageInitShape<DescMessage>)));

/** Types that the fast codecs do not support, each for a different reason, with sample values. */
const unsupported: [DescMessage, object][] = [
  [FileDescriptorProtoSchema, { name: "a.proto", dependency: ["b.proto"] }],
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
  it.each(schemas)("writes the same bytes as the library for %s", (schema) => {
    const encode = createBinaryEncoder(schema);
    fc.assert(
      fc.property(messageInits(schema), (init) => {
        const expected = hex(libraryBytes(schema, init));
        expect(hex(encode(init))).toBe(expected);
        expect(hex(encode(create(schema, init as MessageInitShape<DescMessage>)))).toBe(expected);
      }),
    );
  });

  it.each(unsupported)("writes %s with the library", (schema, init) => {
    const bytes = createBinaryEncoder(schema)(init, 5);
    expect(bytes.subarray(5)).toEqual(libraryBytes(schema, init));
  });

  it.each([
    0n,
    -1n,
    2n ** 31n,
    2n ** 32n,
    2n ** 53n - 1n,
    2n ** 53n,
    2n ** 53n + 1n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ])("writes and reads the number %s", (seconds) => {
    const bytes = createBinaryEncoder(TimestampSchema)({ seconds });
    expect(bytes).toEqual(libraryBytes(TimestampSchema, { seconds }));
    expect((createBinaryDecoder(TimestampSchema)(bytes) as Timestamp).seconds).toBe(seconds);
  });

  it("writes and reads every duration as the library does, even an invalid one", () => {
    const encode = createBinaryEncoder(DurationSchema);
    const decode = createBinaryDecoder(DurationSchema);
    const seconds = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(fc.record({ seconds, nanos: fc.integer() }), (duration) => {
        const bytes = encode(duration);
        expect(bytes).toEqual(libraryBytes(DurationSchema, duration));
        expect(decode(bytes)).toStrictEqual(create(DurationSchema, duration));
      }),
    );
  });

  it("writes and reads durations in a list as the library does", () => {
    const schema = createSchema(fields.durations, {});
    fc.assert(
      fc.property(fc.array(durations), (value) => {
        const bytes = createBinaryEncoder(schema)({ value });
        expect(bytes).toEqual(libraryBytes(schema, { value }));
        expect(createBinaryDecoder(schema)(bytes)).toStrictEqual(fromBinary(schema, bytes));
      }),
    );
  });

  it("writes a message larger than its buffer", () => {
    const encode = createBinaryEncoder(ApplicationSchema);
    const boundaries = [2 ** 7, 2 ** 14, 2 ** 21];
    const sizes = boundaries.flatMap((boundary) =>
      [8, 6, 5, 4, 3, 2, 1, 0].map((it) => boundary - it),
    );
    for (const description of sizes.map((size) => "a".repeat(size))) {
      const application = { name: description, rules: [{ description }, { priority: 1 }] };
      const expected = libraryBytes(ApplicationSchema, application);
      expect(encode(application).equals(expected)).toBe(true);
    }
  });

  it("leaves the requested headroom", () => {
    const encode = createBinaryEncoder(CheckAccessRequestSchema);
    const bytes = encode({ key: "a" }, 5);
    expect(bytes.subarray(5)).toEqual(encode({ key: "a" }));
  });

  it("does not modify returned buffers", () => {
    const encode = createBinaryEncoder(CheckAccessRequestSchema);
    const first = encode({ key: "first" });
    const before = Buffer.from(first);
    encode({ key: "second" });
    expect(first).toEqual(before);
  });

  it("recovers after a message that it cannot write", () => {
    const encode = createBinaryEncoder(ApplicationSchema);
    expect(() => encode({ name: "a", rules: [{ priority: 2 ** 31 }] })).toThrow("invalid int32");
    expect(encode({ id: "b" })).toEqual(libraryBytes(ApplicationSchema, { id: "b" }));
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
        const bytes = Buffer.concat([libraryBytes(schema, first), libraryBytes(schema, second)]);
        expect(decode(bytes)).toStrictEqual(fromBinary(schema, bytes));
      }),
    );
  });

  it.each(unsupported)("reads %s with the library", (schema, init) => {
    const bytes = libraryBytes(schema, init);
    expect(createBinaryDecoder(schema)(bytes)).toStrictEqual(fromBinary(schema, bytes));
  });

  it.each(schemas)(
    "accepts no bytes for a %s that the library refuses or reads differently",
    (schema) => {
      const decode = createBinaryDecoder(schema);
      fc.assert(
        fc.property(corrupted(schema), (bytes) => {
          const message = tryTo(() => decode(bytes));
          if (message !== undefined) {
            expect(message).toStrictEqual(fromBinary(schema, bytes, ignoreUnknown));
          }
        }),
        { numRuns: 300 },
      );
    },
  );

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
    ["a number for a string field", [0x08, 0]],
    ["a number for a message field", [0x10, 0]],
    ["a nested message longer than its parent", [0x12, 5, 0x0a, 1, 0x61]],
    ["a string longer than its message", [0x12, 3, 0x0a, 2, 0x61, 0x0a, 0]],
    ["field number 0", [0x02, 0]],
    ["an unknown wire type", [0x0e, 0]],
    ["a truncated tag", [0x8a]],
    ["a tag over 32 bits", [0x8a, 0x80, 0x80, 0x80, 0x10, 0]],
    ["a tag of six bytes", [0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 0]],
    ["a varint of eleven bytes", [0x98, 0x06, ...Array(10).fill(0x80), 0]],
    ["an end of a group without a start", [0x9c, 0x06]],
    ["a group with the end tag of another", [0x9b, 0x06, 0xa4, 0x06]],
    ["a group without an end", [0x9b, 0x06]],
    ["too many nested groups", [...groups(101)]],
  ])("refuses %s", (_, bytes) => {
    expect(() => decode(Uint8Array.from(bytes))).toThrow();
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

/** The bytes of a message with some changed, removed or inserted. */
function corrupted(schema: DescMessage): fc.Arbitrary<Uint8Array> {
  const change = fc.record({
    at: fc.nat(400),
    remove: fc.nat(3),
    insert: fc.uint8Array({ maxLength: 3 }),
  });
  return fc
    .tuple(messageInits(schema), fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([init, changes]) => {
      const bytes = [...libraryBytes(schema, init)];
      for (const { at, remove, insert } of changes) {
        bytes.splice(at % (bytes.length + 1), remove, ...insert);
      }
      return Uint8Array.from(bytes);
    });
}

function tryTo<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

it("reads one item over the limit of a list and skips the rest", () => {
  const decode = createBinaryDecoder(CreateApplicationRequestSchema);
  const rules = Array.from({ length: 2_000 }, () => ({ priority: 1 }));
  const permissions = Array.from({ length: 60 }, (_, at) => `token:read${at}`);
  const sent = { name: "a", rules, permissions, allowedOrigins: ["https://shop.example"] };
  const read = decode(libraryBytes(CreateApplicationRequestSchema, sent));
  expect(read).toEqual(
    create(CreateApplicationRequestSchema, {
      ...sent,
      rules: rules.slice(0, 1_001),
      permissions: permissions.slice(0, 51),
    }),
  );
});
