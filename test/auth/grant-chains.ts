import fc from "fast-check";
import {
  type ApplicationType,
  type Grants,
  heldPermissions,
  type RuleRecord,
} from "../../src/contract/grants.js";
import { isOwnPermission } from "../../src/contract/methods.js";

/** An application, as far as it decides who may give what. */
export interface Made extends Grants {
  readonly type: ApplicationType;
}

/** What somebody tries. Callers and targets are counted among all that there are by then. */
export interface Step {
  readonly kind: "create" | "update" | "authorize";
  readonly caller: number;
  readonly target: number;
  readonly type: ApplicationType;
  readonly grants: Grants;
}

export interface Chain {
  readonly start: readonly Made[];
  readonly steps: readonly Step[];
}

const permission = fc.constantFrom(
  ...["application:create", "application:update", "application:read", "event:read"],
  ...["token:read", "token:use"],
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

/** Public applications cannot hold all of these, which is not what chains are about. */
const made: fc.Arbitrary<Made> = fc.tuple(type, grants).map(([type, grants]) => ({
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

/** A few applications, and what they and others then try. */
export const chain: fc.Arbitrary<Chain> = fc.record({
  start: fc.array(made, { minLength: 1, maxLength: 4 }),
  steps: fc.array(step, { maxLength: 12 }),
});

export function namesIn(all: readonly Grants[]): string[] {
  return [...new Set(all.flatMap(heldPermissions))];
}

export function ownNamesIn(all: readonly Grants[]): string[] {
  return namesIn(all).filter(isOwnPermission);
}

/** Whether an application can give permissions of other services freely. */
export function givesFreely(made: Made): boolean {
  const held = heldPermissions(made);
  return (
    made.type === "management" &&
    (held.includes("application:create") || held.includes("application:update"))
  );
}
