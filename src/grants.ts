import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AccessRule, AccessRuleSchema } from "../gen/latchkey/v1/access_rule_pb.js";
import { type Caller, callerHolds, nameOf } from "./caller.js";
import type { GrantPolicy } from "./config.js";
import { isOwnPermission, mayHold } from "./contract.js";
import { invalidRequest, permissionDenied } from "./errors.js";
import { heldPermissions } from "./store/application-search.js";
import { ruleFields } from "./store/rule-fields.js";
import type { ApplicationType, Grants } from "./store/store.js";
import { unsuitedGrants } from "./unsuited-grants.js";

/** The grants in a request. */
export function readGrants(request: { permissions: string[]; rules: AccessRule[] }): Grants {
  return { permissions: request.permissions, rules: request.rules.map(ruleFields) };
}

/** Grants as answers show them. */
export function showGrants({ permissions, rules }: Grants): GrantsInit {
  return {
    permissions: [...permissions],
    rules: rules.map((rule) => ({
      ...rule,
      conditions: [...rule.conditions],
      permissions: [...rule.permissions],
    })),
  };
}

interface GrantsInit {
  readonly permissions: string[];
  readonly rules: MessageInitShape<typeof AccessRuleSchema>[];
}

/** Refuses grants that an application of this type cannot have. */
export function checkGrantsSuit(type: ApplicationType, grants: Grants): void {
  const violations = unsuitedGrants(type, grants);
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
}

/** Refuses grants that no session can have. */
export function checkSessionMayHold(grants: Grants): void {
  const refused = heldPermissions(grants).filter((permission) => !mayHold("session", permission));
  if (refused.length > 0) {
    throw permissionDenied(
      `A session cannot be given ${refused.join(", ")}: its key lives in browsers. Leave it out, and do that from your backend.`,
    );
  }
}

/**
 * The rules against escalation: nobody hands out, or takes over with a
 * regenerated key, more than it holds itself.
 */
export interface GrantGuard {
  /** For applications: permissions of this service must be held by the caller, others are free. */
  checkMayGive(caller: Caller, grants: Grants): void;

  /** For sessions: every permission must be held by the caller. */
  checkMayDelegate(caller: Caller, grants: Grants): void;
}

export function createGrantGuard(policy: GrantPolicy): GrantGuard {
  if (policy === "open") {
    return { checkMayGive: () => {}, checkMayDelegate: () => {} };
  }
  return {
    checkMayGive: (caller, grants) =>
      checkHeld(caller, heldPermissions(grants).filter(isOwnPermission)),
    checkMayDelegate: (caller, grants) => checkHeld(caller, heldPermissions(grants)),
  };
}

/** How many missing permissions are named: an error must stay small. */
const mostTold = 10;

function checkHeld(caller: Caller, permissions: readonly string[]): void {
  const missing = permissions
    .filter((permission) => !callerHolds(caller, permission))
    .slice(0, mostTold);
  if (missing.length > 0) {
    throw permissionDenied(
      `Only a caller that holds ${missing.join(", ")} can give it, and ${nameOf(caller)} does not.`,
      missing,
    );
  }
}
