import type { DescMethod } from "@bufbuild/protobuf";
import { type Access, CallerKind } from "../../gen/latchkey/v1/options_pb.js";
import { type Caller, callerHolds } from "../auth/caller.js";
import { nameOf } from "../contract/decisions/explain.js";
import { holds } from "../contract/grants.js";
import { accessOf, callerKinds } from "../contract/methods.js";
import { type Problem, permissionDenied } from "../errors.js";

/** Throws if a caller may not call a method. */
type Authorize = (caller: Caller, method: DescMethod) => void;

/** Enforces the access rule of each method: caller kind and permission. */
export function createAuthorize(methods: readonly DescMethod[]): Authorize {
  const rules = new Map(methods.map((method) => [method, accessOf(method)]));
  return (caller, method) => {
    const rule = rules.get(method);
    if (!rule) {
      throw new Error(`${method.name} has no access rule`);
    }
    const refusal = refuse(rule, caller);
    if (refusal) {
      throw refusal;
    }
  };
}

function refuse({ callers, permission }: Access, caller: Caller): Problem | undefined {
  const kind = callerKinds[caller.session ? "session" : caller.application.type];
  if (callers.length > 0 && !callers.includes(kind)) {
    return permissionDenied(
      `This method requires the key of a ${callers.map(labelOf).join(" or ")}, but yours belongs to ${nameOf(caller)}.`,
    );
  }
  if (permission === "" || callerHolds(caller, permission)) {
    return undefined;
  }
  return permissionDenied(
    `This method requires the permission ${permission}, but ${nameOf(caller)} ${denialReason(caller, permission)}.`,
    [permission],
  );
}

function denialReason({ session, boundary }: Caller, permission: string): string {
  if (session && session.authorizedAt === undefined) {
    return "is not authorized yet: authorize it first";
  }
  return session && boundary && holds(session, permission)
    ? `was authorized by ${nameOf({ application: boundary })}, which does not hold it: grant it to that application`
    : "does not hold it: grant it, or use another key";
}

function labelOf(kind: CallerKind): string {
  const label = CallerKind[kind].toLowerCase();
  return kind === CallerKind.SESSION ? label : `${label} application`;
}
