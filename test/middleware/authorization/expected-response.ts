import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { errors } from "../../../gen/latchkey/v1/options_pb.js";
import { accessOf, callerKinds, mayHold } from "../../../src/contract/methods.js";
import { problemCatalogue } from "../../../src/contract/problems.js";
import type { CallerColumn } from "./callers.js";

/**
 * The outcome of a call: done; done, without data of another tenant;
 * refused with a status; or impossible, since no caller can hold the permission.
 */
export type Outcome = "done" | "own" | "impossible" | number;

/** Whether the caller holds the method's permission. */
export type Holding = "with" | "without";

/** The expected outcome by the contract, for a target of the first tenant. */
export function expectedOutcome(
  method: DescMethod,
  column: CallerColumn,
  holding: Holding,
): Outcome {
  const { permission, callers } = accessOf(method);
  const kind = column.kindFor(method);
  const isWanted = permission !== "" && holding === "with" && !column.holdsNothing;
  if (kind !== undefined && isWanted && !mayHold(kind, permission)) {
    return "impossible";
  }
  if (kind === undefined || column.isEnded) {
    return problemCatalogue.unauthenticated.status;
  }
  const suits = callers.length === 0 || callers.includes(callerKinds[kind]);
  if (!suits || (permission !== "" && (holding === "without" || column.holdsNothing))) {
    return problemCatalogue.permission_denied.status;
  }
  const seeks = getOption(method, errors).some((code) => code.endsWith("_not_found"));
  if (column.aim === "what holds more" && seeks && changes(method)) {
    return problemCatalogue.permission_denied.status;
  }
  const locksOut = getOption(method, errors).includes("last_manager");
  if (column.aim === "itself, the last manager" && locksOut) {
    return problemCatalogue.last_manager.status;
  }
  if (!column.isElsewhere) {
    return "done";
  }
  // An id of another tenant is not found.
  return seeks ? problemCatalogue.application_not_found.status : "own";
}

/** Whether a method changes an existing application or session. AuthorizeSession needs only a nonce. */
function changes({ name, idempotency }: DescMethod): boolean {
  return idempotency !== Level.NO_SIDE_EFFECTS && name !== "AuthorizeSession";
}
