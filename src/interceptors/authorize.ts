import type { DescMethod } from "@bufbuild/protobuf";
import { type Access, CallerKind } from "../../gen/latchkey/v1/options_pb.js";
import { type Caller, callKey, grantsOf, holds, nameOf } from "../caller.js";
import { accessOf, callerKinds } from "../contract.js";
import { type Problem, permissionDenied } from "../errors.js";
import type { Interceptor } from "./interceptor.js";

/** Lets a call pass where the access rule of its method lets its caller pass. */
export function createAuthorizeInterceptor(methods: readonly DescMethod[]): Interceptor {
  const rules = new Map(methods.map((method) => [method as DescMethod, accessOf(method)]));
  return (next) => (request) => {
    const rule = rules.get(request.method);
    const { caller } = request.contextValues.get(callKey);
    if (!rule || !caller) {
      throw new Error(`${request.method.name} is served without its access rule or its caller`);
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
      `This needs the key of a ${callers.map(labelOf).join(" or ")}. Yours belongs to ${nameOf(caller)}.`,
    );
  }
  if (permission === "" || holds(grantsOf(caller), permission)) {
    return undefined;
  }
  const isPending = caller.session !== undefined && caller.session.authorizedAt === undefined;
  const why = isPending ? "is not authorized yet" : "does not hold it";
  return permissionDenied(
    `This needs the permission ${permission}, and ${nameOf(caller)} ${why}.`,
    [permission],
  );
}

function labelOf(kind: CallerKind): string {
  const label = CallerKind[kind].toLowerCase();
  return kind === CallerKind.SESSION ? label : `${label} application`;
}
