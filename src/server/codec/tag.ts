import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";

/** What precedes a field of a plain message on the wire: its number and how it is sent. */
export function tagOf(field: DescField): number {
  const isVarint = field.fieldKind === "scalar" && field.scalar !== ScalarType.STRING;
  const wireType = isVarint ? WireType.Varint : WireType.LengthDelimited;
  return field.number * 8 + wireType;
}
