import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { errors } from "../../../gen/latchkey/v1/options_pb.js";
import { accessOf, callerTypes, mayHold } from "../../../src/contract/methods.js";
import { problemCatalogue } from "../../../src/contract/problems.js";
import type { CallerColumn } from "./callers.js";

/**
 * "done": success; "own": success without data of the other tenant; a number: the status of the
 * refusal; "impossible": this type of caller cannot hold the permission.
 */
export type Outcome = "done" | "own" | "impossible" | number;

/** Whether the caller holds the method's permission. */
export type Holding = "with" | "without";

/** The outcome that the contract requires for a target of the first tenant. */
export function getExpectedOutcome(
  method: DescMethod,
  column: CallerColumn,
  holding: Holding,
): Outcome {
  const { permission, callers, keyHeader, ownSession } = accessOf(method);
  const type = column.getOwnerType(method);
  const needsPermission = permission !== "" && holding === "with" && !column.hasNoPermissions;
  if (type !== undefined && needsPermission && !mayHold(type, permission)) {
    return "impossible";
  }
  if (type === undefined || column.isInactive) {
    return problemCatalogue.unauthenticated.status;
  }
  if (column.specialTarget === "itself as session" && ownSession !== "") {
    return "done";
  }
  const isTypeAllowed = callers.length === 0 || callers.includes(callerTypes[type]);
  if (!isTypeAllowed || (permission !== "" && (holding === "without" || column.hasNoPermissions))) {
    return problemCatalogue.permission_denied.status;
  }
  const canBeNotFound = getOption(method, errors).some((code) => code.endsWith("_not_found"));
  if (column.specialTarget === "more privileged" && canBeNotFound && modifiesTarget(method)) {
    return problemCatalogue.permission_denied.status;
  }
  const canLockOut = getOption(method, errors).includes("last_manager");
  if (column.specialTarget === "itself as last manager" && canLockOut) {
    return problemCatalogue.last_manager.status;
  }
  if (column.specialTarget === "itself as last manager" && keyHeader !== "") {
    // As the client of a gateway, it does not hold the permission of the request.
    return problemCatalogue.permission_denied.status;
  }
  if (!column.isOtherTenant) {
    return "done";
  }
  if (keyHeader !== "") {
    // To a gateway, a client's key of another tenant is not valid.
    return problemCatalogue.unauthenticated.status;
  }
  // An id of another tenant is not found.
  return canBeNotFound ? problemCatalogue.application_not_found.status : "own";
}

/** Whether a method changes an existing application or session. AuthorizeSession only needs a nonce. */
function modifiesTarget({ name, idempotency }: DescMethod): boolean {
  return idempotency !== Level.NO_SIDE_EFFECTS && name !== "AuthorizeSession";
}
