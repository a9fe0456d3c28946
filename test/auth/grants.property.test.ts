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
import {
  arbitraryGrants,
  arbitraryQuery,
  maxTransformRank,
  transformRank,
} from "../contract/decisions/grants.js";
import {
  type Chain,
  type ChainApplication,
  canGrantUnheldPermissions,
  chain,
  listOwnPermissions,
  listPermissions,
  type Step,
} from "./grant-chains.js";

/** The rank of the transform that the grants allow. */
function allowedRank(grants: Grants, permission: string, token: Token | undefined): number {
  return transformRank(decide(compileGrants(grants), permission, token, false));
}

/** The highest rank that a grantor can grant. A direct permission can be granted with any transform. */
function grantableRank(grants: Grants, permission: string, token: Token | undefined): number {
  return grants.permissions.includes(permission)
    ? maxTransformRank
    : allowedRank(grants, permission, token);
}

/** Removes grants until all are covered. */
function removeUncovered(own: Grants, given: Grants, current: Grants): Grants {
  const fields = new Set(uncoveredGrants(own, given, current).map(({ field }) => field));
  if (fields.size === 0) {
    return given;
  }
  const remaining = {
    permissions: given.permissions.filter((_, at) => !fields.has(`permissions[${at}]`)),
    rules: given.rules.map((rule, index) => ({
      ...rule,
      permissions: rule.permissions.filter(
        (_, at) => !fields.has(`rules[${index}].permissions[${at}]`),
      ),
    })),
  };
  return removeUncovered(own, remaining, current);
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
  it("never allows a weaker transform than the grantor may grant or the holder already has", () => {
    fc.assert(
      fc.property(threeGrants, arbitraryQuery, ({ own, current, given }, { permission, token }) => {
        const covered = removeUncovered(own, given, current);
        const max = Math.max(
          grantableRank(own, permission, token),
          allowedRank(current, permission, token),
        );
        expect(allowedRank(covered, permission, token)).toBeLessThanOrEqual(max);
      }),
      { numRuns: 2_000 },
    );
  });

  it("includes the grants of the grantor and of the holder", () => {
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

/** Runs the permitted steps of a chain and returns the result. */
function runChain({ start, steps }: Chain): {
  applications: ChainApplication[];
  sessions: Grants[];
} {
  const guard = createGrantGuard("held");
  const applications = [...start];
  const sessions: Grants[] = [];

  function callerAt(index: number): Caller {
    const all: Caller[] = [
      ...applications.map((application) => ({ application: toRecord(application) })),
      ...sessions.map((grants) => ({
        application: toRecord({ type: "public", permissions: [], rules: [] }),
        session: grants as SessionRecord,
      })),
    ];
    return all[index % all.length] as Caller;
  }

  function runStep({ kind, caller: callerIndex, target: targetIndex, type, grants }: Step): void {
    const caller = callerAt(callerIndex);
    const may = (permission: string) => holds(grantsOf(caller), permission);
    const at = targetIndex % applications.length;
    const target = applications[at] as ChainApplication;
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
      runStep(step);
    } catch (error) {
      expect(error).toBeInstanceOf(Problem);
    }
  }
  return { applications, sessions };
}

function toRecord(application: ChainApplication): ApplicationRecord {
  return { id: "", name: "", ...application } as ApplicationRecord;
}

describe("a chain of creates, updates and authorizations", () => {
  it("never grants a permission of this service that no application held", () => {
    fc.assert(
      fc.property(chain, (chain) => {
        const { applications, sessions } = runChain(chain);
        const held = new Set(listOwnPermissions(chain.start));
        expect(
          listOwnPermissions([...applications, ...sessions]).filter((name) => !held.has(name)),
        ).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("never grants a permission that no application held, if it starts without a management application", () => {
    fc.assert(
      fc.property(chain, (chain) => {
        fc.pre(!chain.start.some(canGrantUnheldPermissions));
        const { applications, sessions } = runChain(chain);
        const held = new Set(listPermissions(chain.start));
        expect(
          listPermissions([...applications, ...sessions]).filter((name) => !held.has(name)),
        ).toEqual([]);
        expect(applications.filter(canGrantUnheldPermissions)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("never allows an application a weaker transform than the initial ones could grant, if it starts without a management application", () => {
    const tokens = ["/a/", "/a/b/", "/c/", undefined].map((container) => ({ id: "x", container }));
    fc.assert(
      fc.property(chain, ({ start, steps }) => {
        fc.pre(!start.some(canGrantUnheldPermissions));
        const withoutSessions = steps.filter(({ kind }) => kind !== "authorize");
        const { applications } = runChain({ start, steps: withoutSessions });
        for (const permission of ["token:read", "token:use"]) {
          for (const token of [...tokens, undefined]) {
            const max = Math.max(
              ...start.map((application) => grantableRank(application, permission, token)),
            );
            for (const application of applications) {
              expect(allowedRank(application, permission, token)).toBeLessThanOrEqual(max);
            }
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
