import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { createEncoder } from "../../../src/store/lmdb/message-encoder.js";
import { messageInits } from "../../support/generators/messages.js";

const schemas: readonly DescMessage[] = [
  ApplicationRecordSchema,
  SessionRecordSchema,
  EventRecordSchema,
];

describe("the encoder of stored messages", () => {
  it.each(schemas)("writes the bytes of protobuf for any $name", (schema) => {
    const encode = createEncoder(schema);
    fc.assert(
      fc.property(messageInits(schema), fc.nat(300), (fields, headerSize) => {
        const bytes = encode(fields, headerSize);
        expect(bytes.subarray(0, headerSize)).toEqual(Buffer.alloc(headerSize));
        expect(bytes.subarray(headerSize).equals(toBinary(schema, create(schema, fields)))).toBe(
          true,
        );
      }),
      { numRuns: 500 },
    );
  });

  it.each([0, 1, 127, 128, 16_383, 16_384, 65_536, 3_000_000])(
    "writes the bytes of protobuf around %i characters of text",
    (length) => {
      const encode = createEncoder(ApplicationRecordSchema);
      for (const character of ["a", "é", "\u{1f511}", "\ud800"]) {
        const text = character.repeat(length);
        const fields = { name: text, rules: [{ container: text, priority: -1 }], sessionEpoch: 7 };
        const expected = toBinary(ApplicationRecordSchema, create(ApplicationRecordSchema, fields));
        expect(encode(fields, 3).subarray(3).equals(expected)).toBe(true);
      }
    },
  );

  it.each([-(2 ** 31), -1, -0, 0, 127, 128, 2 ** 31 - 1])(
    "writes the integer %i",
    (sessionEpoch) => {
      const fields = { sessionEpoch, sessionQuota: sessionEpoch, createdAt: sessionEpoch };
      const expected = toBinary(ApplicationRecordSchema, create(ApplicationRecordSchema, fields));
      expect(createEncoder(ApplicationRecordSchema)(fields, 0)).toEqual(Buffer.from(expected));
    },
  );

  it.each([0.5, 2 ** 31, Number.NaN])("refuses %d as an integer", (sessionEpoch) => {
    expect(() => createEncoder(ApplicationRecordSchema)({ sessionEpoch }, 0)).toThrow(RangeError);
  });

  it("refuses a message with fields of another type", () => {
    expect(() => createEncoder(StructSchema)).toThrow("does not support");
  });
});
