import type { CheckAccessRequest } from "../../gen/latchkey/v1/access_service_pb.js";
import { type Named, nameOf } from "../caller.js";
import { quote } from "../errors.js";
import type { PlaceRefusal } from "../restrictions.js";
import type { LimitedBy } from "./decide.js";

/** Why a check is denied, by words that never change their meaning. */
export type DenialReason =
  | "unknown_key"
  | "expired"
  | "disabled"
  | PlaceRefusal
  | "not_authorized"
  | "permission_missing"
  | "no_rule_matches";

/** A denial, and on which side it is where its subject is a session. */
export interface DenialFacts {
  readonly reason: DenialReason;
  readonly limitedBy?: LimitedBy | undefined;
}

/** Whom a check is about. */
export interface DeniedSubject extends Named {
  readonly authorizer?: (Named["application"] & { readonly disabled: boolean }) | undefined;
}

/** What a person is told of a denial: why, and what would have to be granted. */
export function explainDenial(
  { reason, limitedBy }: DenialFacts,
  subject: DeniedSubject | undefined,
  request: Omit<CheckAccessRequest, "key" | "$typeName">,
): string {
  const { permission, token, origin, address } = request;
  if (!subject) {
    return (
      "The key is none of this tenant that works: mistyped, replaced, deleted or long expired. " +
      "Ask its owner for the present one."
    );
  }
  const { authorizer } = subject;
  if (authorizer && limitedBy === "authorizer") {
    const why = explainDenial({ reason }, { application: authorizer }, request);
    return `${why} It authorized the session, which may do no more than its authorizer.`;
  }
  const name = nameOf(subject);
  switch (reason) {
    case "expired":
      return `The key has expired; it belonged to ${name}. Ask for a new one.`;
    case "disabled":
      return authorizer?.disabled
        ? `The key belongs to ${name}, and ${nameOf({ application: authorizer })}, which authorized it, is disabled for now. Enable that application to let it work again.`
        : `The key belongs to ${name}, which is disabled for now. Enable the application to let it work again.`;
    case "origin_not_allowed":
      return origin === undefined
        ? `The key belongs to ${name}, which may be used from certain origins only: pass the Origin header that came with it as origin.`
        : `The key belongs to ${name}, which may not be used from the origin ${quote(origin)}: add it to the allowed_origins of the application.`;
    case "address_not_allowed":
      return address === undefined
        ? `The key belongs to ${name}, which may be used from certain addresses only: pass the one that it came from as address.`
        : `The key belongs to ${name}, which may not be used from the address ${quote(address)}: add it to the allowed_cidrs of the application.`;
    case "not_authorized":
      return `The key belongs to ${name}, which has no access before a backend authorizes it.`;
    case "no_rule_matches":
      return token
        ? `The rules of ${name} that list ${permission} are not about this token: grant ` +
            `${permission} in a rule that matches it, or bare.`
        : `The rules of ${name} that list ${permission} are about certain tokens: say which ` +
            `token, or grant ${permission} bare.`;
    default:
      return `${capitalize(name)} does not hold ${permission}: grant it bare or in a rule.`;
  }
}

function capitalize(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
