import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "../../../gen/buf/validate/validate_pb.js";

/** The values that the contract allows in a field of text, in its order. */
export function allowedValues<Desc extends DescMessage>(
  schema: Desc,
  field: keyof Desc["field"] & string,
): readonly string[] {
  const described = schema.field[field];
  const rules = described && getOption(described, fieldRules).type;
  return rules?.case === "string" ? rules.value.in : [];
}
