import type { DescMethod } from "@bufbuild/protobuf";
import { callersOf } from "./access.js";
import type { Facts } from "./facts.js";

/** The errors of a method's own options, and those of idempotency keys. */
export function ownErrorsOf(facts: Facts, method: DescMethod): string[] {
  return [
    ...facts.errors(method),
    ...(facts.isReplayable(method) ? ["idempotency_conflict", "idempotency_key_reused"] : []),
  ];
}

/** The errors of authentication and authorization. */
export function refusalsOf(facts: Facts, method: DescMethod): string[] {
  const isOpen = callersOf(facts, method).length === facts.callerKinds.length;
  return [
    "unauthenticated",
    ...(isOpen && !facts.access(method).permission ? [] : ["permission_denied"]),
    "origin_not_allowed",
    "address_not_allowed",
  ];
}
