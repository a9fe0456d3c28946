import fc from "fast-check";
import {
  type ApplicationType,
  type Grants,
  heldPermissions,
  type RuleRecord,
} from "../../src/contract/grants.js";
import { isOwnPermission } from "../../src/contract/methods.js";

/** The fields of an application that affect grants. */
export interface ChainApplication extends Grants {
  readonly type: ApplicationType;
}

/** An attempted call. Caller and target are indexes into the applications and sessions so far. */
export interface Step {
  readonly kind: "create" | "update" | "authorize";
  readonly caller: number;
  readonly target: number;
  readonly type: ApplicationType;
  readonly grants: Grants;
}

export interface Chain {
  readonly start: readonly ChainApplication[];
  readonly steps: readonly Step[];
}

const permission = fc.constantFrom(
  ...["application:create", "application:update", "application:read", "event:read"],
  "token:read",
  "token:use",
);

const rule: fc.Arbitrary<RuleRecord> = fc.record({
  priority: fc.integer({ min: 1, max: 3 }),
  container: fc.constantFrom("/", "/a/", "/a/b/", "/c/"),
  conditions: fc.constant([]),
  transform: fc.constantFrom("redact", "mask", "reveal"),
  permissions: fc.uniqueArray(permission, { minLength: 1, maxLength: 2 }),
});

const grants: fc.Arbitrary<Grants> = fc.record({
  permissions: fc.uniqueArray(permission, { minLength: 1, maxLength: 3 }),
  rules: fc.array(rule, { maxLength: 2 }),
});

const type = fc.constantFrom<ApplicationType>("private", "private", "management", "public");

/** Never public, because public applications cannot hold all of these permissions. */
const application: fc.Arbitrary<ChainApplication> = fc
  .tuple(type, grants)
  .map(([type, grants]) => ({
    type: type === "public" ? "private" : type,
    ...grants,
  }));

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("create", "update", "authorize"),
  caller: fc.nat(20),
  target: fc.nat(20),
  type,
  grants,
});

/** Initial applications, and the calls that they and later ones attempt. */
export const chain: fc.Arbitrary<Chain> = fc.record({
  start: fc.array(application, { minLength: 1, maxLength: 4 }),
  steps: fc.array(step, { maxLength: 12 }),
});

export function listPermissions(grants: readonly Grants[]): string[] {
  return [...new Set(grants.flatMap(heldPermissions))];
}

/** Only the permissions of this service. */
export function listOwnPermissions(grants: readonly Grants[]): string[] {
  return listPermissions(grants).filter(isOwnPermission);
}

/** Whether an application can grant permissions of other services that it does not hold. */
export function canGrantUnheldPermissions(application: ChainApplication): boolean {
  const held = heldPermissions(application);
  return (
    application.type === "management" &&
    (held.includes("application:create") || held.includes("application:update"))
  );
}
