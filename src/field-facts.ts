import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as rulesOf } from "../gen/buf/validate/validate_pb.js";

/** The words that a field of the contract may hold, where these are few. */
export function choicesOf(field: DescField): readonly string[] {
  const { type } = getOption(field, rulesOf);
  if (type.case !== "string" || type.value.in.length === 0) {
    throw new Error(`${field.parent.typeName}.${field.name} holds more than a few words`);
  }
  return type.value.in;
}

/** How many characters a field of the contract may hold. */
export function maxLengthOf(field: DescField): number | undefined {
  const { type } = getOption(field, rulesOf);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}
