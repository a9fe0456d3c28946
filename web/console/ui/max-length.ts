import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "../../../gen/buf/validate/validate_pb.js";

/** How many characters the contract allows in a field of text. */
export function maxLengthOf(field: DescField): number | undefined {
  const { type } = getOption(field, fieldRules);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}
