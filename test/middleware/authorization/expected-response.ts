import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { CallerKind, errors } from "../../../gen/latchkey/v1/options_pb.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { accessOf, callerKinds, mayHold } from "../../../src/contract/methods.js";
import { problemCatalogue } from "../../../src/contract/problems.js";
import type { CallerColumn } from "./callers.js";

/**
 * What a call came to: done; done, with nothing of another tenant in it;
 * refused with a status; or not to be tried, since nobody can hold that.
 */
export type Outcome = "done" | "own" | "impossible" | number;

/** Whether the caller of a cell has the permission that the method asks for. */
export type Holding = "with" | "without";

/** What the contract says of a call by such a caller, aimed at a target of the first tenant. */
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
  // Who names something by its id is told that there is no such thing.
  return seeks ? problemCatalogue.application_not_found.status : "own";
}

/** Whether a method changes an application or session that is there. To authorize takes a nonce, and no more. */
function changes({ name, idempotency }: DescMethod): boolean {
  return idempotency !== Level.NO_SIDE_EFFECTS && name !== "AuthorizeSession";
}

/** A kind of application that a method lets in, were its key a good one. */
export function welcomeKind(method: DescMethod): ApplicationType {
  const { callers } = accessOf(method);
  return callers.includes(CallerKind.PUBLIC) ? "public" : "private";
}
