import { type DescMessage, fromJson, getOption, type JsonObject } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describeViolation, type RulesOf } from "../../src/validation/violation-messages.js";
import type { Facts } from "./facts.js";

/** Returns the validation errors of a message by field. */
export type Validate = (message: DescMessage, json: JsonObject) => Record<string, string[]>;

/** Uses the validator and the messages of the service, so that examples match its responses. */
export function createValidate({ registry }: Facts): Validate {
  const validator = createValidator({ registry });
  const option = registry.getExtension("buf.validate.field");
  if (!option) {
    throw new Error("the protos do not import buf/validate/validate.proto");
  }
  const rulesOf = ((field) => getOption(field, option)) as RulesOf;
  return (message, json) => {
    const result = validator.validate(message, fromJson(message, json));
    if (result.kind === "error") {
      throw result.error;
    }
    const errors: Record<string, string[]> = {};
    for (const violation of result.violations ?? []) {
      const { field, message } = describeViolation(violation, rulesOf);
      errors[field] = [...(errors[field] ?? []), message];
    }
    return errors;
  };
}

export function isValid(errors: Record<string, string[]>): boolean {
  return Object.keys(errors).length === 0;
}
