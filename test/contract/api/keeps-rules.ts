import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { expect } from "@jest/globals";
import { validationRules } from "../../../src/contract/methods.js";
import { matchesPattern } from "../../../src/validation/violations.js";

const validator = createValidator({ registry: validationRules, regexMatch: matchesPattern });

/** Checks that an answer keeps the rules that its own message states, and answers it. */
export function keepsRules<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): MessageShape<Desc> {
  const { kind, error } = validator.validate(schema, message);
  expect({ kind, error }).toEqual({ kind: "valid", error: undefined });
  return message;
}
