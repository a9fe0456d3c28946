import type { DescMethod } from "@bufbuild/protobuf";
import { callersOf } from "./access.js";
import type { Facts } from "./facts.js";

/** The errors that a method states itself, and those that come with what it takes. */
export function ownErrorsOf(facts: Facts, method: DescMethod): string[] {
  return [
    ...facts.errors(method),
    ...(facts.isReplayable(method) ? ["idempotency_conflict", "idempotency_key_reused"] : []),
  ];
}

/** The errors by which a caller is turned away whatever it asks. */
export function refusalsOf(facts: Facts, method: DescMethod): string[] {
  const isOpen = callersOf(facts, method).length === facts.callerKinds.length;
  return [
    "unauthenticated",
    ...(isOpen && !facts.access(method).permission ? [] : ["permission_denied"]),
    "origin_not_allowed",
    "address_not_allowed",
  ];
}
