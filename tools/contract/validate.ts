import { type DescMessage, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import type { Facts } from "./facts.js";

/** What is wrong with a message, by the path of the field: nothing, or what the service says of it. */
export type Validate = (message: DescMessage, json: JsonObject) => Record<string, string[]>;

/** Uses the validator of the service, so that examples hold what it holds and speak as it speaks. */
export function createValidate({ registry }: Facts): Validate {
  const validator = createValidator({ registry });
  return (message, json) => {
    const result = validator.validate(message, fromJson(message, json));
    if (result.kind === "error") {
      throw result.error;
    }
    const errors: Record<string, string[]> = {};
    for (const violation of result.violations ?? []) {
      const path = pathToString(violation.field) || "request";
      errors[path] = [...(errors[path] ?? []), violation.message];
    }
    return errors;
  };
}

export function isValid(errors: Record<string, string[]>): boolean {
  return Object.keys(errors).length === 0;
}
