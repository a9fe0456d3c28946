import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Caller, grantsOf } from "../../src/auth/caller.js";
import { uncoveredGrants } from "../../src/auth/grant-coverage.js";
import { checkGrantsAllowed, checkMayAdminister, createGrantGuard } from "../../src/auth/grants.js";
import { compileGrants, decide } from "../../src/contract/decisions/decide.js";
import type { Token } from "../../src/contract/decisions/scope.js";
import { type Grants, holds } from "../../src/contract/grants.js";
import { Problem } from "../../src/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../src/store/port/records.js";
import { arbitraryGrants, arbitraryQuery } from "../contract/decisions/grants.js";
import {
  type Chain,
  chain,
  givesFreely,
  type Made,
  namesIn,
  ownNamesIn,
  type Step,
} from "./grant-chains.js";

const transforms = ["redact", "mask", "reveal"];

/** How much of a token the grants show; -1 for nothing. */
function sight(grants: Grants, permission: string, token: Token | undefined): number {
  const decision = decide(compileGrants(grants), permission, token, false);
  return decision.allowed ? transforms.indexOf(decision.transform) : -1;
}

/** The same for a grantor: a directly granted permission can be granted with any transform. */
function reach(grants: Grants, permission: string, token: Token | undefined): number {
  return grants.permissions.includes(permission)
    ? transforms.length - 1
    : sight(grants, permission, token);
}

/** Removes grants until all are covered. */
function coveredPart(own: Grants, given: Grants, current: Grants): Grants {
  const fields = new Set(uncoveredGrants(own, given, current).map(({ field }) => field));
  if (fields.size === 0) {
    return given;
  }
  const left = {
    permissions: given.permissions.filter((_, at) => !fields.has(`permissions[${at}]`)),
    rules: given.rules.map((rule, place) => ({
      ...rule,
      permissions: rule.permissions.filter(
        (_, at) => !fields.has(`rules[${place}].permissions[${at}]`),
      ),
    })),
  };
  return coveredPart(own, left, current);
}

/** Grants of two holders, and some of neither. */
const threeGrants = fc
  .tuple(arbitraryGrants, arbitraryGrants, arbitraryGrants)
  .chain(([own, current, others]) => {
    const rules = [...own.rules, ...current.rules, ...others.rules.slice(0, 3)];
    const given = fc.record({
      permissions: fc.shuffledSubarray([
        ...new Set([...own.permissions, ...current.permissions, ...others.permissions]),
      ]),
      rules: fc.shuffledSubarray(rules),
    });
    return fc.record({ own: fc.constant(own), current: fc.constant(current), given });
  });

describe("grant coverage", () => {
  it("never shows more than the grantor sees, or than before", () => {
    fc.assert(
      fc.property(threeGrants, arbitraryQuery, ({ own, current, given }, { permission, token }) => {
        const covered = coveredPart(own, given, current);
        const most = Math.max(reach(own, permission, token), sight(current, permission, token));
        expect(sight(covered, permission, token)).toBeLessThanOrEqual(most);
      }),
      { numRuns: 2_000 },
    );
  });

  it("covers its own grants, for the grantor and for the holder", () => {
    fc.assert(
      fc.property(arbitraryGrants, arbitraryGrants, (grants, others) => {
        expect(uncoveredGrants(others, grants, grants)).toEqual([]);
        for (const rule of grants.rules.slice(0, 1)) {
          expect(
            uncoveredGrants({ permissions: [], rules: [rule] }, { permissions: [], rules: [rule] }),
          ).toEqual([]);
        }
      }),
    );
  });
});

/** Runs the allowed steps of a chain and returns the result. */
function follow({ start, steps }: Chain): { applications: Made[]; sessions: Grants[] } {
  const guard = createGrantGuard("held");
  const applications = [...start];
  const sessions: Grants[] = [];

  function callerAt(at: number): Caller {
    const all: Caller[] = [
      ...applications.map((made) => ({ application: toRecord(made) })),
      ...sessions.map((grants) => ({
        application: toRecord({ type: "public", permissions: [], rules: [] }),
        session: grants as SessionRecord,
      })),
    ];
    return all[at % all.length] as Caller;
  }

  function take({ kind, caller: by, target: of, type, grants }: Step): void {
    const caller = callerAt(by);
    const may = (permission: string) => holds(grantsOf(caller), permission);
    const at = of % applications.length;
    const target = applications[at] as Made;
    if (kind === "create" && may("application:create")) {
      checkGrantsAllowed(type, grants);
      guard.checkMayGrant(caller, { type, grants });
      applications.push({ type, ...grants });
    } else if (kind === "update" && may("application:update")) {
      checkMayAdminister(caller, target);
      checkGrantsAllowed(target.type, grants);
      guard.checkMayGrant(caller, { type: target.type, grants, current: target });
      applications[at] = { type: target.type, ...grants };
    } else if (kind === "authorize" && caller.application.type === "private") {
      guard.checkMayDelegate(caller, grants);
      sessions.push(grants);
    }
  }

  for (const step of steps) {
    try {
      take(step);
    } catch (error) {
      expect(error).toBeInstanceOf(Problem);
    }
  }
  return { applications, sessions };
}

function toRecord(made: Made): ApplicationRecord {
  return { id: "", name: "", ...made } as ApplicationRecord;
}

describe("a chain of creates, updates and authorizations", () => {
  it("never creates a permission of this service that nobody held", () => {
    fc.assert(
      fc.property(chain, (chain) => {
        const { applications, sessions } = follow(chain);
        const held = new Set(ownNamesIn(chain.start));
        expect(ownNamesIn([...applications, ...sessions]).filter((it) => !held.has(it))).toEqual(
          [],
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it("never creates a permission that nobody held, without a management application at the start", () => {
    fc.assert(
      fc.property(chain, (chain) => {
        fc.pre(!chain.start.some(givesFreely));
        const { applications, sessions } = follow(chain);
        const held = new Set(namesIn(chain.start));
        expect(namesIn([...applications, ...sessions]).filter((it) => !held.has(it))).toEqual([]);
        expect(applications.filter(givesFreely)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("never shows an application more than any saw, without a management application at the start", () => {
    const tokens = ["/a/", "/a/b/", "/c/", undefined].map((container) => ({ id: "x", container }));
    fc.assert(
      fc.property(chain, ({ start, steps }) => {
        fc.pre(!start.some(givesFreely));
        const withoutSessions = steps.filter(({ kind }) => kind !== "authorize");
        const { applications } = follow({ start, steps: withoutSessions });
        for (const permission of ["token:read", "token:use"]) {
          for (const token of [...tokens, undefined]) {
            const most = Math.max(...start.map((made) => reach(made, permission, token)));
            for (const made of applications) {
              expect(sight(made, permission, token)).toBeLessThanOrEqual(most);
            }
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
