import type { GrantPolicy } from "../config/settings.js";
import { nameOf } from "../contract/decisions/explain.js";
import {
  type ApplicationType,
  type Grants,
  heldPermissions,
  holds,
  managerPermissions,
} from "../contract/grants.js";
import { isOwnPermission, mayHold } from "../contract/methods.js";
import { invalidRequest, permissionDenied } from "../errors.js";
import type { ApplicationRecord } from "../store/port/records.js";
import { findDisallowedGrants } from "../validation/violations.js";
import { type Caller, callerHolds, expiryOf, grantsOf } from "./caller.js";
import { uncoveredGrants } from "./grant-coverage.js";

/** Throws if an application of this type cannot have the grants. */
export function checkGrantsAllowed(type: ApplicationType, grants: Grants): void {
  const violations = findDisallowedGrants(type, grants);
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
}

/** Throws if a session cannot have the grants. */
export function checkSessionMayHold(grants: Grants): void {
  const refused = heldPermissions(grants).filter((permission) => !mayHold("session", permission));
  if (refused.length > 0) {
    throw permissionDenied(
      `A session cannot hold ${refused.join(", ")}, because its key is used in browsers. ` +
        "Remove it from the request, and make these calls from your backend with its own key.",
    );
  }
}

/** The requested grants of an application. */
export interface ProposedGrants {
  readonly type: ApplicationType;
  readonly grants: Grants;
  /** When the application expires. Absent if it never does. */
  readonly expiresAt?: number | undefined;
  /** The current grants of an existing application, which need no new check. */
  readonly current?: Grants | undefined;
}

/** Prevents privilege escalation: callers cannot grant more than they have. The operator can turn it off. */
export interface GrantGuard {
  /**
   * For applications. The caller must hold Latchkey's own permissions, and
   * cannot grant them for longer than it has them. Management applications can
   * grant any other permission; other callers only what their grants cover.
   */
  checkMayGrant(caller: Caller, proposed: ProposedGrants): void;

  /** For a new key. The response gives the caller a key with the application's grants. */
  checkMayRegenerate(caller: Caller, target: ApplicationRecord): void;

  /** For sessions. The caller must hold every permission. */
  checkMayDelegate(caller: Caller, grants: Grants): void;
}

export function createGrantGuard(policy: GrantPolicy): GrantGuard {
  if (policy === "open") {
    return { checkMayGrant: () => {}, checkMayRegenerate: () => {}, checkMayDelegate: () => {} };
  }
  return {
    checkMayGrant(caller, proposed) {
      checkHeld(caller, ownPermissionsOf(proposed.grants));
      checkLifetime(caller, proposed);
      checkMayCreateManager(caller, proposed);
      checkCovered(caller, proposed);
    },
    checkMayRegenerate(caller, target) {
      if (target.id === caller.application.id && !caller.session) {
        return;
      }
      const { type, expiresAt } = target;
      const proposed = { type, grants: target, expiresAt };
      checkLifetime(caller, proposed);
      checkMayCreateManager(caller, proposed);
      checkCovered(caller, proposed);
    },
    checkMayDelegate: (caller, grants) => checkHeld(caller, heldPermissions(grants)),
  };
}

/** Throws if the target holds a permission of Latchkey that the caller lacks. Always on, whatever the policy. */
export function checkMayAdminister(caller: Caller, target: Grants): void {
  const missing = findMissing(caller, ownPermissionsOf(target));
  if (missing.length > 0) {
    throw permissionDenied(
      `The application holds ${missing.join(", ")}. Only a caller that also holds it can change ` +
        `the application or revoke its keys or sessions, and ${nameOf(caller)} does not. ` +
        "Use a key that holds it.",
      missing,
    );
  }
}

/** The maximum number of permissions in an error message. */
const maxListed = 10;

function ownPermissionsOf(grants: Grants): string[] {
  return heldPermissions(grants).filter(isOwnPermission);
}

function findMissing(caller: Caller, permissions: readonly string[]): string[] {
  return permissions.filter((permission) => !callerHolds(caller, permission)).slice(0, maxListed);
}

function checkHeld(caller: Caller, permissions: readonly string[]): void {
  const missing = findMissing(caller, permissions);
  if (missing.length > 0) {
    throw permissionDenied(
      `Only a caller that holds ${missing.join(", ")} can grant it, and ${nameOf(caller)} does not. ` +
        "Remove it from the request, or use a key that holds it.",
      missing,
    );
  }
}

/** Ignores the expiry of a replaced key, because its application continues with another one. */
function checkLifetime(caller: Caller, { grants, expiresAt, current }: ProposedGrants): void {
  const latest = expiryOf({ ...caller, key: undefined });
  if (latest === undefined || (expiresAt !== undefined && expiresAt <= latest)) {
    return;
  }
  const granted = ownPermissionsOf(grants)
    .filter((permission) => !current || !holds(current, permission))
    .slice(0, maxListed);
  if (granted.length > 0) {
    const expiry = new Date(latest).toISOString();
    throw permissionDenied(
      `You can grant ${granted.join(", ")} only to an application that expires no later than your ` +
        `own key, at ${expiry}. Set an earlier expires_at.`,
    );
  }
}

/** Whether a caller may grant any permission of other services. */
function mayGrantAny({ application, session }: Caller): boolean {
  return application.type === "management" && !session;
}

/** A new management application could grant permissions that its creator does not have. */
function checkMayCreateManager(caller: Caller, { type, grants, current }: ProposedGrants): void {
  if (type !== "management" || mayGrantAny(caller)) {
    return;
  }
  const granted = managerPermissions.filter(
    (permission) => holds(grants, permission) && !(current && holds(current, permission)),
  );
  if (granted.length > 0) {
    throw permissionDenied(
      `Only a management application can grant ${granted.join(" and ")} to a management ` +
        "application, or regenerate the key of one that holds it. " +
        `The caller is ${nameOf(caller)}. Create a private application instead.`,
      granted,
    );
  }
}

function checkCovered(caller: Caller, { grants, current }: ProposedGrants): void {
  if (mayGrantAny(caller)) {
    return;
  }
  const uncovered = uncoveredGrants(grantsOf(caller), grants, current)
    .filter(({ permission }) => !isOwnPermission(permission))
    .slice(0, maxListed);
  if (uncovered.length > 0) {
    const listed = uncovered.map(({ field, text }) => `${field} (${text})`);
    throw permissionDenied(
      `Your grants do not cover ${listed.join(", ")}. A grant covers another one if it has the same ` +
        "permission, the same container or a parent of it, and a transform that reveals at least " +
        "as much. Narrow these grants, or use a key whose grants cover them.",
      [...new Set(uncovered.map(({ permission }) => permission))],
    );
  }
}
