import type { DescField, DescMethod, Message } from "@bufbuild/protobuf";
import { type Access, CallerType } from "../../gen/latchkey/v1/options_pb.js";
import { type Caller, callerHolds } from "../auth/caller.js";
import { nameOf } from "../contract/decisions/explain.js";
import { holds } from "../contract/grants.js";
import { accessOf, callerTypes } from "../contract/methods.js";
import { type Problem, permissionDenied } from "../errors.js";

interface Authorize {
  /** Throws if a caller may not call a method. Sessions pass that may call it for themselves. */
  call(caller: Caller, method: DescMethod): void;

  /** Throws if a session that may call a method only for itself names another session. */
  request(caller: Caller, method: DescMethod, request: Message): void;
}

/** Enforces the access rule of each method: type of caller and permission. */
export function createAuthorize(methods: readonly DescMethod[]): Authorize {
  const rules = new Map(methods.map((method) => [method, createRule(method)]));

  function ruleOf(method: DescMethod): Rule {
    const rule = rules.get(method);
    if (!rule) {
      throw new Error(`${method.name} has no access rule`);
    }
    return rule;
  }

  return {
    call(caller, method) {
      const { access, ownSession } = ruleOf(method);
      const refusal = ownSession && caller.session ? undefined : refuse(access, caller);
      if (refusal) {
        throw refusal;
      }
    },

    request(caller, method, request) {
      const { access, ownSession } = ruleOf(method);
      if (!ownSession || !caller.session) {
        return;
      }
      const named = (request as unknown as Record<string, string>)[ownSession.localName];
      const isOwn = caller.session.id === named?.toLowerCase();
      const refusal = isOwn ? undefined : refuse(access, caller);
      if (refusal) {
        throw refusal;
      }
    },
  };
}

interface Rule {
  readonly access: Access;
  /** The request field with the id of the session that needs no permission, if the method has one. */
  readonly ownSession: DescField | undefined;
}

function createRule(method: DescMethod): Rule {
  const access = accessOf(method);
  const { name, input, methodKind } = method;
  const ownSession = input.fields.find((field) => field.name === access.ownSession);
  if (access.ownSession !== "" && (ownSession === undefined || methodKind !== "unary")) {
    throw new Error(`${name} is not unary or has no field ${access.ownSession}`);
  }
  return { access, ownSession };
}

function refuse({ callers, permission }: Access, caller: Caller): Problem | undefined {
  const type = callerTypes[caller.session ? "session" : caller.application.type];
  if (callers.length > 0 && !callers.includes(type)) {
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

function labelOf(type: CallerType): string {
  const label = CallerType[type].toLowerCase();
  return type === CallerType.SESSION ? label : `${label} application`;
}
