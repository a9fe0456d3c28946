import type { GrantPolicy } from "../config/settings.js";
import { nameOf } from "../contract/decisions/explain.js";
import {
  type ApplicationType,
  type Grants,
  heldPermissions,
  holds,
  managerPermissions,
  permissionSetOf,
  type Restrictions,
} from "../contract/grants.js";
import { isOwnPermission, mayHold } from "../contract/methods.js";
import { permissionDenied } from "../errors.js";
import type { ApplicationChange, ApplicationRecord } from "../store/port/records.js";
import { type Caller, expiryOf, limitsOf } from "./caller.js";
import { compareGrants, type GrantComparison } from "./grant-coverage.js";
import { areNetworksWithin, isWidened } from "./widening.js";

/** Throws if a session cannot have the grants. */
export function assertSessionMayHold(grants: Grants): void {
  const refused = heldPermissions(grants).filter((permission) => !mayHold("session", permission));
  if (refused.length > 0) {
    throw permissionDenied(
      `A session cannot hold ${refused.join(", ")}, because its key is used in browsers. ` +
        "Remove it from the request, and make these calls from your backend with its own key.",
    );
  }
}

/** An application as it would be after a call. */
export type ProposedApplication = Grants &
  Partial<Pick<ApplicationRecord, "expiresAt" | "disabled">> &
  Restrictions & { readonly type: ApplicationType };

/** Prevents privilege escalation: callers cannot grant more than they have. The operator can turn it off. */
export interface GrantGuard {
  /**
   * For a new application. The caller must hold Latchkey's own permissions, and
   * cannot grant them for longer than it has them. Management applications can
   * grant any other permission; for no token do other callers grant more than
   * their own grants decide, nor for longer or in more networks.
   */
  assertMayCreate(caller: Caller, application: ProposedApplication): void;

  /** Like {@link assertMayCreate} for a change, except for what the application has already. */
  assertMayChange(caller: Caller, current: ApplicationRecord, change: GrantChange): void;

  /** Whether changes by the caller compare grants, which takes a while if there are many. */
  comparesGrants(caller: Caller): boolean;

  /** For sessions. The caller must hold every permission. */
  assertMayDelegate(caller: Caller, grants: Grants): void;
}

/** A change of an application. Other fields do not matter. */
export interface GrantChange extends Omit<ApplicationChange, "modifiedBy"> {
  /** Whether the caller gets a key, and with it all grants of the application. */
  readonly givesKey?: boolean | undefined;
}

export function createGrantGuard(policy: GrantPolicy): GrantGuard {
  if (policy === "open") {
    return {
      assertMayCreate: () => {},
      assertMayChange: () => {},
      comparesGrants: () => false,
      assertMayDelegate: () => {},
    };
  }
  return {
    assertMayCreate(caller, application) {
      assertMayGive(caller, application, undefined, compareFor(caller, application, undefined));
    },
    assertMayChange,
    comparesGrants: (caller) => !mayGrantAny(caller),
    assertMayDelegate: (caller, grants) => assertHeld(caller, heldPermissions(grants)),
  };
}

function assertMayChange(
  caller: Caller,
  current: ApplicationRecord,
  { givesKey = false, ...change }: GrantChange,
): void {
  if (givesKey && current.id === caller.application.id && !caller.session) {
    return;
  }
  const proposed = afterChange(current, change);
  const isGivenAnew = givesKey || isWidened(current, proposed);
  const { permissions, rules } = current;
  if (!isGivenAnew && proposed.permissions === permissions && proposed.rules === rules) {
    return;
  }
  const kept = isGivenAnew ? undefined : current;
  assertMayGive(caller, proposed, kept, compareFor(caller, proposed, kept));
}

function afterChange(
  current: ApplicationRecord,
  change: Omit<ApplicationChange, "modifiedBy">,
): ProposedApplication {
  const { expiresAt = current.expiresAt } = change;
  return {
    type: current.type,
    permissions: change.permissions ?? current.permissions,
    rules: change.rules ?? current.rules,
    allowedOrigins: change.allowedOrigins ?? current.allowedOrigins,
    allowedCidrs: change.allowedCidrs ?? current.allowedCidrs,
    disabled: change.disabled ?? current.disabled,
    expiresAt: expiresAt ?? undefined,
  };
}

/** Throws if the caller may not give the application what it has not kept. */
function assertMayGive(
  caller: Caller,
  application: ProposedApplication,
  kept: Grants | undefined,
  { given, uncovered }: GrantComparison,
): void {
  const own = ownPermissionsOf(application);
  assertHeld(caller, own);
  const heldBefore = new Set(kept && heldPermissions(kept));
  const all = [...own.filter((permission) => !heldBefore.has(permission)), ...given];
  assertLifetime(caller, application, all);
  assertNetworks(caller, application, all);
  assertMayCreateManager(caller, application, heldBefore);
  assertCovered(uncovered);
}

/** Compares permissions of other services, unless the caller may grant any. */
function compareFor(
  caller: Caller,
  requested: Grants,
  current: Grants | undefined,
): GrantComparison {
  return mayGrantAny(caller)
    ? { given: [], uncovered: [] }
    : compareGrants({
        givers: limitsOf(caller),
        requested,
        current,
        concerns: (permission) => !isOwnPermission(permission),
      });
}

/** Throws if the target holds a permission of Latchkey that the caller lacks. Always on, whatever the policy. */
export function assertMayAdminister(caller: Caller, target: Grants): void {
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
  const limits = limitsOf(caller);
  return permissions
    .filter((permission) => !limits.every((grants) => isHeld(grants, permission)))
    .slice(0, maxListed);
}

/** Reads the rules last, because their records must be decoded. */
function isHeld(grants: Grants, permission: string): boolean {
  return grants.permissions.includes(permission) || permissionSetOf(grants).has(permission);
}

function assertHeld(caller: Caller, permissions: readonly string[]): void {
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
function assertLifetime(
  caller: Caller,
  { expiresAt }: ProposedApplication,
  given: readonly string[],
): void {
  const latest = expiryOf({ ...caller, key: undefined });
  if (latest === undefined || (expiresAt !== undefined && expiresAt <= latest)) {
    return;
  }
  if (given.length > 0) {
    const expiry = new Date(latest).toISOString();
    throw permissionDenied(
      `You can grant ${list(given)} only to an application that expires no later than your ` +
        `own key, at ${expiry}. Set an earlier expires_at.`,
    );
  }
}

/** A caller that is bound to networks cannot give what it has to one that is not. */
function assertNetworks(
  caller: Caller,
  { allowedCidrs }: ProposedApplication,
  given: readonly string[],
): void {
  const own = caller.application.allowedCidrs;
  if (given.length > 0 && !mayGrantAny(caller) && !areNetworksWithin(allowedCidrs, own)) {
    throw permissionDenied(
      `Your key is restricted to the networks ${own.join(", ")}, so you can grant ${list(given)} ` +
        "only to an application that is restricted to them too. " +
        "Set allowed_cidrs to these networks, or to networks inside them.",
    );
  }
}

/** Whether a caller may grant any permission of other services. */
function mayGrantAny({ application, session }: Caller): boolean {
  return application.type === "management" && !session;
}

/** A new management application could grant permissions that its creator does not have. */
function assertMayCreateManager(
  caller: Caller,
  { type, ...grants }: ProposedApplication,
  heldBefore: ReadonlySet<string>,
): void {
  if (type !== "management" || mayGrantAny(caller)) {
    return;
  }
  const granted = managerPermissions.filter(
    (permission) => holds(grants, permission) && !heldBefore.has(permission),
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

function assertCovered(uncovered: GrantComparison["uncovered"]): void {
  if (uncovered.length > 0) {
    const listed = uncovered.map(({ field, text }) => `${field} (${text})`);
    throw permissionDenied(
      `Your grants do not cover ${list(listed)}. For each token you can grant at most what your own ` +
        "grants decide: your rules in their order, then your permissions with the transform mask " +
        "(token:use: reveal). Narrow these grants, or use a key whose grants cover them.",
      [...new Set(uncovered.map(({ permission }) => permission))].slice(0, maxListed),
    );
  }
}

/** The first items of a list. */
function list(items: readonly string[]): string {
  const more = items.length > maxListed ? " and more" : "";
  return `${items.slice(0, maxListed).join(", ")}${more}`;
}
