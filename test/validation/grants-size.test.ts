import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { CredentialStateRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import type { Grants } from "../../src/contract/grants.js";
import { findOversizedGrants } from "../../src/validation/grants-size.js";

/** Texts whose characters take one to four bytes. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc
    .constantFrom("a", "é", "€", "𝄞")
    .chain((character) => fc.integer({ min: 1, max: 300 }).map((count) => character.repeat(count))),
);
const optional = fc.option(text, { nil: undefined });
const condition = fc.record({ attribute: text, operator: text, value: text });
const rule = fc.record({
  description: optional,
  priority: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  container: optional,
  conditions: fc.array(condition, { maxLength: 3 }),
  transform: text,
  permissions: fc.array(text, { maxLength: 5 }),
});
const anyGrants = fc.record({
  permissions: fc.array(text, { maxLength: 5 }),
  rules: fc.array(rule, { maxLength: 5 }),
});

function encodedSize({ permissions, rules }: Grants): number {
  const record = { permissions, rules } as MessageInitShape<typeof CredentialStateRecordSchema>;
  return toBinary(CredentialStateRecordSchema, create(CredentialStateRecordSchema, record)).length;
}

describe("the size of grants", () => {
  it("is limited to the byte, whatever their texts", () => {
    fc.assert(
      fc.property(anyGrants, (grants) => {
        const size = encodedSize(grants);
        expect(findOversizedGrants(grants, size)).toEqual([]);
        const refused = findOversizedGrants(grants, size - 1);
        expect(refused).toHaveLength(1);
        expect(refused[0]?.message).toContain(`they are ${size} bytes`);
      }),
    );
  });

  it("does not include the other fields of a record", () => {
    const grants = { permissions: ["token:read"], rules: [] };
    const record = { ...grants, name: "Shop", description: "d".repeat(100) };
    expect(findOversizedGrants(record, encodedSize(grants))).toEqual([]);
  });
});
