import type { DescMethod } from "@bufbuild/protobuf";
import { type Access, CallerKind } from "../../gen/latchkey/v1/options_pb.js";
import { type Caller, callerHolds, callKey } from "../auth/caller.js";
import { nameOf } from "../contract/decisions/explain.js";
import { holds } from "../contract/grants.js";
import { accessOf, callerKinds } from "../contract/methods.js";
import { type Problem, permissionDenied } from "../errors.js";
import type { Interceptor } from "./interceptor.js";

/** Enforces the access rule of each method: caller kind and permission. */
export function createAuthorizeInterceptor(methods: readonly DescMethod[]): Interceptor {
  const rules = new Map(methods.map((method) => [method as DescMethod, accessOf(method)]));
  return (next) => (request) => {
    const rule = rules.get(request.method);
    const { caller } = request.contextValues.get(callKey);
    if (!rule || !caller) {
      throw new Error(`${request.method.name} has no access rule or no authenticated caller`);
    }
    const refusal = refuse(rule, caller);
    if (refusal) {
      throw refusal;
    }
    return next(request);
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
