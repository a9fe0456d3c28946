import { type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";

type Init = Record<string, unknown>;

/** Empty, long, non-ASCII text, and text that JSON must escape. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.string({ minLength: 100, maxLength: 300 }),
  fc.constantFrom("", "\ufeffmarked", "\ufffd", '"\\\n\u2028\u0000', "é".repeat(70)),
);

/** Includes keys that are also properties of every object, and keys that objects sort first. */
const mapKeys = fc.oneof(
  text,
  fc.constantFrom(
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "a.b",
    "$set",
    "0",
    "10",
  ),
);

/** Generates values for any subset of the fields of a message. */
export function messageInits(schema: DescMessage): fc.Arbitrary<Init> {
  const members = schema.members.map((member) => [
    member.localName,
    member.kind === "oneof" ? anyChoice(member) : anyValue(member),
  ]);
  return fc.record(Object.fromEntries(members), { requiredKeys: [] });
}

/** One of the fields of a oneof. */
function anyChoice({ fields }: DescOneof): fc.Arbitrary<Init> {
  return fc.oneof(
    ...fields.map((field) =>
      fc.record({ case: fc.constant(field.localName), value: anyValue(field) }),
    ),
  );
}

function anyValue(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === "list") {
    const item: fc.Arbitrary<unknown> =
      field.listKind === "message" ? messageInits(field.message) : text;
    return fc.array(item, { maxLength: 4 });
  }
  if (field.fieldKind === "map") {
    return fc.array(fc.tuple(mapKeys, text), { maxLength: 4 }).map(Object.fromEntries);
  }
  return field.fieldKind === "message" ? anyMessage(field.message) : anyScalar(field.scalar);
}

function anyMessage(schema: DescMessage): fc.Arbitrary<Init> {
  switch (schema.typeName) {
    case "google.protobuf.Timestamp":
      return anyTimestamp;
    case "google.protobuf.Duration":
      return durations;
    case "google.protobuf.FieldMask":
      return anyFieldMask;
    default:
      return messageInits(schema);
  }
}

const anyNanos = fc.oneof(
  fc.integer({ min: 0, max: 999_999_999 }),
  fc.integer({ min: 0, max: 999 }).map((milliseconds) => milliseconds * 1_000_000),
  fc.integer({ min: 0, max: 999_999 }).map((microseconds) => microseconds * 1_000),
);

/** A timestamp within the range of JSON. */
const anyTimestamp = fc.record({
  seconds: fc.oneof(
    fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
    fc.constantFrom(0n, 1n, -1n, 253_402_300_799n, -62_135_596_800n),
  ),
  nanos: anyNanos,
});

/** A non-negative duration within the range of JSON. */
export const durations = fc.record({
  seconds: fc.oneof(
    fc.bigInt({ min: 0n, max: 315_576_000_000n }),
    fc.constantFrom(0n, 1n, 3_600n, 315_576_000_000n),
  ),
  nanos: anyNanos,
});

/** A field mask that JSON can represent. */
const anyFieldMask = fc.record({
  paths: fc.array(fc.stringMatching(/^[a-z]+(_[a-z]+){0,2}$/), { maxLength: 4 }),
});

function anyScalar(scalar: ScalarType | undefined): fc.Arbitrary<unknown> {
  switch (scalar) {
    case ScalarType.STRING:
      return text;
    case ScalarType.INT32:
      return fc.oneof(fc.integer(), fc.constantFrom(0, 1, -1, 127, 128, 0x7fff_ffff, -0x8000_0000));
    case ScalarType.DOUBLE:
      // JSON writes a negative zero as 0.
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0);
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 300 });
    default:
      throw new Error(`no generator for scalar type ${scalar}`);
  }
}
