import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Caller, grantsOf } from "../../src/auth/caller.js";
import { assertMayAdminister, createGrantGuard } from "../../src/auth/grants.js";
import { compileGrants, decide } from "../../src/contract/decisions/decide.js";
import type { Token } from "../../src/contract/decisions/scope.js";
import { type Grants, holds } from "../../src/contract/grants.js";
import { Problem } from "../../src/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../src/store/port/records.js";
import { throwViolations } from "../../src/validation/validate.js";
import { findDisallowedGrants } from "../../src/validation/violations.js";
import { transformRank } from "../contract/decisions/grants.js";
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
      throwViolations(findDisallowedGrants(type, grants));
      guard.assertMayCreate(caller, { type, ...grants, allowedOrigins: [], allowedCidrs: [] });
      applications.push({ type, ...grants });
    } else if (kind === "update" && may("application:update")) {
      assertMayAdminister(caller, target);
      throwViolations(findDisallowedGrants(target.type, grants));
      guard.assertMayChange(caller, toRecord(target), grants);
      applications[at] = { type: target.type, ...grants };
    } else if (kind === "authorize" && caller.application.type === "private") {
      guard.assertMayDelegate(caller, grants);
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
  const unrestricted = { disabled: false, allowedOrigins: [], allowedCidrs: [] };
  const record = { id: "", name: "", version: 1, ...unrestricted, ...application };
  return record as unknown as ApplicationRecord;
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

  it("never allows an application a weaker transform than the initial ones, if it starts without a management application", () => {
    const tokens = ["/a/", "/a/b/", "/c/", undefined].map((container) => ({ id: "x", container }));
    fc.assert(
      fc.property(chain, ({ start, steps }) => {
        fc.pre(!start.some(canGrantUnheldPermissions));
        const withoutSessions = steps.filter(({ kind }) => kind !== "authorize");
        const { applications } = runChain({ start, steps: withoutSessions });
        for (const permission of ["token:read", "token:use"]) {
          for (const token of [...tokens, undefined]) {
            const max = Math.max(
              ...start.map((application) => allowedRank(application, permission, token)),
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
