import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ApplicationType, Grants } from "../../../src/contract/grants.js";
import { groupByField } from "../../../src/contract/problems.js";
import { findDisallowedGrants, findFieldViolations } from "../../../src/validation/violations.js";

/** Error messages by field path of the service: `rules[0].container`. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

/** Violations of the proto constraints, with the messages of the service. */
export function fieldErrorsOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): FieldErrors {
  return groupByField(findFieldViolations(schema, message));
}

/** Grants that this application type does not allow. */
export function grantErrorsOf(type: ApplicationType, grants: Grants): FieldErrors {
  return groupByField(findDisallowedGrants(type, grants));
}
