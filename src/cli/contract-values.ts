import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "../../gen/buf/validate/validate_pb.js";

/** The words that a field of the contract may hold, where these are few. */
export function valuesOf(schema: DescMessage, name: string): string[] {
  const field = schema.fields.find((field) => field.name === name);
  const rules = field && getOption(field, fieldRules).type;
  if (rules?.case !== "string" || rules.value.in.length === 0) {
    throw new Error(`${schema.typeName}.${name} holds more than a few words`);
  }
  return rules.value.in;
}
