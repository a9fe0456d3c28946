import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AccessRule, AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import type { GrantPolicy } from "../config/settings.js";
import { nameOf } from "../contract/decisions/explain.js";
import {
  type ApplicationType,
  type Grants,
  heldPermissions,
  holds,
  ruleFields,
} from "../contract/grants.js";
import { isOwnPermission, mayHold } from "../contract/methods.js";
import { invalidRequest, permissionDenied } from "../errors.js";
import { managerPermissions } from "../store/port/applications.js";
import type { ApplicationRecord } from "../store/port/records.js";
import { unsuitedGrants } from "../validation/grants.js";
import { type Caller, callerHolds, endOf, grantsOf } from "./caller.js";
import { uncoveredGrants } from "./grant-coverage.js";

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

/** What an application is to be given. */
export interface ProposedGrants {
  readonly type: ApplicationType;
  readonly grants: Grants;
  /** When the application expires; absent where it does not. */
  readonly expiresAt?: number | undefined;
  /** What it has now, where it is there already: to leave it that is to give nothing. */
  readonly current?: Grants | undefined;
}

/** The rules against escalation that the operator can turn off: nobody hands out more than it has. */
export interface GrantGuard {
  /**
   * For applications. Permissions of this service must be held by the caller,
   * and are given for no longer than the caller has them. Those of others are
   * given freely by management applications; all else gives what its own
   * grants cover.
   */
  checkMayGrant(caller: Caller, proposed: ProposedGrants): void;

  /** For a new key of an application: whoever sees the key has what it grants. */
  checkMayTakeOver(caller: Caller, target: ApplicationRecord): void;

  /** For sessions: every permission must be held by the caller. */
  checkMayDelegate(caller: Caller, grants: Grants): void;
}

export function createGrantGuard(policy: GrantPolicy): GrantGuard {
  if (policy === "open") {
    return { checkMayGrant: () => {}, checkMayTakeOver: () => {}, checkMayDelegate: () => {} };
  }
  return {
    checkMayGrant(caller, proposed) {
      checkHeld(caller, ownPermissionsOf(proposed.grants));
      checkLifetime(caller, proposed);
      checkMayMakeManager(caller, proposed);
      checkCovered(caller, proposed);
    },
    checkMayTakeOver(caller, target) {
      if (target.id === caller.application.id && !caller.session) {
        return;
      }
      const { type, expiresAt } = target;
      const taken = { type, grants: target, expiresAt };
      checkLifetime(caller, taken);
      checkMayMakeManager(caller, taken);
      checkCovered(caller, taken);
    },
    checkMayDelegate: (caller, grants) => checkHeld(caller, heldPermissions(grants)),
  };
}

/** Refuses a change of an application by a caller that lacks permissions of this service that it holds. No policy turns this off. */
export function checkMayAdminister(caller: Caller, target: Grants): void {
  const missing = missingOf(caller, ownPermissionsOf(target));
  if (missing.length > 0) {
    throw permissionDenied(
      `The application holds ${missing.join(", ")}. Only a caller that holds that too can change ` +
        `it, revoke its keys or end its sessions, and ${nameOf(caller)} does not.`,
      missing,
    );
  }
}

/** How many missing permissions are named: an error must stay small. */
const mostTold = 10;

function ownPermissionsOf(grants: Grants): string[] {
  return heldPermissions(grants).filter(isOwnPermission);
}

function missingOf(caller: Caller, permissions: readonly string[]): string[] {
  return permissions.filter((permission) => !callerHolds(caller, permission)).slice(0, mostTold);
}

function checkHeld(caller: Caller, permissions: readonly string[]): void {
  const missing = missingOf(caller, permissions);
  if (missing.length > 0) {
    throw permissionDenied(
      `Only a caller that holds ${missing.join(", ")} can give it, and ${nameOf(caller)} does not.`,
      missing,
    );
  }
}

/** A key that was replaced counts as its application here, which goes on with another. */
function checkLifetime(caller: Caller, { grants, expiresAt, current }: ProposedGrants): void {
  const latest = endOf({ ...caller, key: undefined });
  if (latest === undefined || (expiresAt !== undefined && expiresAt <= latest)) {
    return;
  }
  const given = ownPermissionsOf(grants)
    .filter((permission) => !current || !holds(current, permission))
    .slice(0, mostTold);
  if (given.length > 0) {
    const moment = new Date(latest).toISOString();
    throw permissionDenied(
      `You can give ${given.join(", ")} only to an application that expires at ${moment} at the ` +
        "latest, as you do. This one expires later, or never.",
    );
  }
}

/** Whether a caller gives permissions of other services freely, where it may give any. */
function grantsFreely({ application, session }: Caller): boolean {
  return application.type === "management" && !session;
}

/** A management application that can create or update others could give, for its maker, what the maker does not have. */
function checkMayMakeManager(caller: Caller, { type, grants, current }: ProposedGrants): void {
  if (type !== "management" || grantsFreely(caller)) {
    return;
  }
  const given = managerPermissions.filter(
    (permission) => holds(grants, permission) && !(current && holds(current, permission)),
  );
  if (given.length > 0) {
    throw permissionDenied(
      `Only a management application can give ${given.join(" and ")} to a management ` +
        `application, or regenerate the key of one that holds it, and ${nameOf(caller)} is none. ` +
        "Use a private application instead.",
      given,
    );
  }
}

function checkCovered(caller: Caller, { grants, current }: ProposedGrants): void {
  if (grantsFreely(caller)) {
    return;
  }
  const uncovered = uncoveredGrants(grantsOf(caller), grants, current)
    .filter(({ permission }) => !isOwnPermission(permission))
    .slice(0, mostTold);
  if (uncovered.length > 0) {
    const told = uncovered.map(({ field, text }) => `${field} (${text})`);
    throw permissionDenied(
      `Your grants do not cover ${told.join(", ")}. A grant covers another one if it has the same ` +
        "permission, the same container or one around it, and a transform that reveals at least " +
        "as much.",
      [...new Set(uncovered.map(({ permission }) => permission))],
    );
  }
}
