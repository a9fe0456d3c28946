import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Caller } from "../../src/auth/caller.js";
import { createGrantGuard, type GrantChange } from "../../src/auth/grants.js";
import { compileGrants, decide, stricterOf } from "../../src/contract/decisions/decide.js";
import { createRestrictionCheck } from "../../src/contract/decisions/restrictions.js";
import type { Token } from "../../src/contract/decisions/scope.js";
import type { Grants, RuleRecord } from "../../src/contract/grants.js";
import { Problem } from "../../src/errors.js";
import {
  type ApplicationRecord,
  isUnexpired,
  type SessionRecord,
} from "../../src/store/port/records.js";
import { transformRank } from "../contract/decisions/grants.js";

// Every decision that the grants below can make is compared with the real decision kernel.
const permissions = ["token:read", "token:use", "report:run"];
const containers = ["/", "/a", "a/b/", "/a/b/c/", "/ab/", "/c/"];
const paths = [...containers, "/d/", "/a/d/", "/a/b/d/", "/a/b/c/d/"];
const tokens: readonly (Token | undefined)[] = [
  undefined,
  ...[undefined, ...paths].flatMap((container) => [
    { container },
    { id: "x", container },
    { id: "y", container },
  ]),
];

const transform = fc.constantFrom("redact", "mask", "reveal");
const permission = fc.constantFrom(...permissions);
const priority = fc.integer({ min: 1, max: 3 });
const listed = fc.uniqueArray(permission, { minLength: 1, maxLength: 2 });

const containerRule: fc.Arbitrary<RuleRecord> = fc.record({
  priority,
  container: fc.constantFrom(...containers),
  conditions: fc.constant([]),
  transform,
  permissions: listed,
});

const condition = fc.oneof(
  fc.record({
    attribute: fc.constant("id"),
    operator: fc.constantFrom("equals", "starts_with"),
    value: fc.constantFrom("x", "y"),
  }),
  fc.record({
    attribute: fc.constant("container"),
    operator: fc.constantFrom("equals", "starts_with"),
    value: fc.constantFrom("/a", "/a/b/", "/c/"),
  }),
);

const conditionRule: fc.Arbitrary<RuleRecord> = fc.record({
  priority,
  conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
  transform,
  permissions: listed,
});

/** Rules of management applications may match everything. */
const anyRule = fc.oneof(
  { weight: 8, arbitrary: containerRule },
  { weight: 1, arbitrary: containerRule.map(({ container: _, ...rule }) => rule) },
);

const grantsWith = (rule: fc.Arbitrary<RuleRecord>): fc.Arbitrary<Grants> =>
  fc.record({
    permissions: fc.uniqueArray(permission, { maxLength: 3 }),
    rules: fc.array(rule, { maxLength: 4 }),
  });

/** Where and when a key is used. */
interface Use {
  readonly time: number;
  readonly address: string;
  readonly origin: string;
}

/** The restrictions of an application, with a few values that include each other. */
interface Restricted {
  readonly expiresAt?: number | undefined;
  readonly disabled: boolean;
  readonly allowedCidrs: readonly string[];
  readonly allowedOrigins: readonly string[];
}

const networks = ["10.0.0.0/30", "10.0.0.0/31", "10.0.0.2/31", "10.0.0.1", "10.0.0.2", "::/0"];
const origins = ["https://*.shop.example", "https://*.a.shop.example", "https://a.shop.example"];
const uses: readonly Use[] = [5, 15, 25, 35].flatMap((time) =>
  ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "192.0.2.1", "2001:db8::1"].flatMap((address) =>
    ["https://a.shop.example", "https://b.a.shop.example", "https://c.example"].map((origin) => ({
      time,
      address,
      origin,
    })),
  ),
);

const expiry = fc.constantFrom(undefined, 10, 20, 30);
const cidrs = fc.oneof(fc.constant([]), fc.subarray(networks));
const anyRestricted: fc.Arbitrary<Restricted> = fc.record({
  expiresAt: expiry,
  disabled: fc.boolean(),
  allowedCidrs: cidrs,
  allowedOrigins: fc.oneof(fc.constant([]), fc.subarray(origins)),
});
/** A caller is enabled, and only keys of browsers have origins. */
const callerRestricted = fc.record({
  expiresAt: expiry,
  disabled: fc.constant(false),
  allowedCidrs: cidrs,
  allowedOrigins: fc.constant([]),
});
const unrestricted: Restricted = { disabled: false, allowedCidrs: [], allowedOrigins: [] };

type Application = Grants & Restricted;

let version = 0;

function toRecord(type: string, fields: Application): ApplicationRecord {
  version++;
  const own = { id: `${version}`, name: "", version, type };
  return { ...fields, ...own } as unknown as ApplicationRecord;
}

const restrictionCheck = createRestrictionCheck();

/** What each use of the grants decides, in the same order for all grants. -1 is a denial. */
function rankAll(grants: readonly Grants[]): number[] {
  const compiled = grants.map(compileGrants);
  return permissions.flatMap((permission) =>
    tokens.map((token) => {
      const decisions = compiled.map((each) => decide(each, permission, token, false));
      return transformRank(decisions.reduce((one, other) => stricterOf(one, other).decision));
    }),
  );
}

function isUsable(application: ApplicationRecord, { time, address, origin }: Use): boolean {
  return (
    !application.disabled &&
    isUnexpired(application, time) &&
    restrictionCheck.findDenial(application, { address, origin }) === undefined
  );
}

/** The same for every use, when and wherever. */
function rankUses(application: ApplicationRecord, grants: readonly Grants[]): number[] {
  const ranks = rankAll(grants);
  return uses.flatMap((use) => (isUsable(application, use) ? ranks : ranks.map(() => -1)));
}

/** Whether the guard accepts a call. */
function accepts(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(Problem);
    return false;
  }
}

function exceeds(ranks: readonly number[], ...limits: readonly (readonly number[])[]): boolean {
  return ranks.some((rank, index) => limits.every((limit) => rank > (limit[index] as number)));
}

/** Grants of a caller and of a target, and requested ones that resemble both. */
const threeGrants = fc
  .tuple(grantsWith(containerRule), grantsWith(anyRule), grantsWith(anyRule))
  .chain(([own, current, others]) =>
    fc.record({
      own: fc.constant(own),
      current: fc.constant(current),
      requested: fc.record({
        permissions: fc.shuffledSubarray([
          ...new Set([...own.permissions, ...current.permissions, ...others.permissions]),
        ]),
        rules: fc.shuffledSubarray([...own.rules, ...current.rules, ...others.rules.slice(0, 1)]),
      }),
    }),
  );

const guard = createGrantGuard("held");
const noGrants: Grants = { permissions: [], rules: [] };

describe("a private caller", () => {
  it("creates exactly the applications that decide no more than itself, for every token", () => {
    fc.assert(
      fc.property(threeGrants, ({ own, requested }) => {
        const caller = { application: toRecord("private", { ...own, ...unrestricted }) };
        const isAccepted = accepts(() =>
          guard.assertMayCreate(caller, { type: "management", ...requested, ...unrestricted }),
        );
        expect(isAccepted).toBe(!exceeds(rankAll([requested]), rankAll([own])));
      }),
      { numRuns: 1_500 },
    );
  });

  it("makes exactly the updates that decide no more than itself or the target before, for every token", () => {
    fc.assert(
      fc.property(threeGrants, ({ own, current, requested }) => {
        const caller = { application: toRecord("private", { ...own, ...unrestricted }) };
        const target = toRecord("management", { ...current, ...unrestricted });
        const isAccepted = accepts(() => guard.assertMayChange(caller, target, requested));
        const exceeded = exceeds(rankAll([requested]), rankAll([own]), rankAll([current]));
        expect(isAccepted).toBe(!exceeded);
      }),
      { numRuns: 1_500 },
    );
  });

  it("gives nothing that can be used longer, in more places or for more than its own key or the target before", () => {
    const anyChange = fc.record(
      {
        expiresAt: fc.constantFrom(null, 10, 20, 30),
        disabled: fc.boolean(),
        allowedCidrs: cidrs,
        allowedOrigins: fc.subarray(origins),
      },
      { requiredKeys: [] },
    );
    let accepted = 0;
    fc.assert(
      fc.property(
        threeGrants,
        callerRestricted,
        anyRestricted,
        anyChange,
        fc.boolean(),
        ({ own, current, requested }, callerUse, targetUse, restrictions, givesKey) => {
          const caller = { application: toRecord("private", { ...own, ...callerUse }) };
          const before = toRecord("public", { ...current, ...targetUse });
          const change: GrantChange = givesKey ? {} : { ...requested, ...restrictions };
          const { expiresAt = before.expiresAt } = change;
          const after = toRecord("public", {
            ...before,
            ...change,
            expiresAt: expiresAt ?? undefined,
          } as Application);
          const check = () => guard.assertMayChange(caller, before, { ...change, givesKey });
          if (!accepts(check)) {
            return;
          }
          accepted++;
          // The caller keeps a new key.
          const kept = givesKey ? noGrants : before;
          expect(
            exceeds(
              rankUses(after, [after]),
              rankUses(caller.application, [caller.application]),
              rankUses(before, [kept]),
            ),
          ).toBe(false);
        },
      ),
      { numRuns: 3_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it("creates nothing that can be used longer, in more networks or for more than its own key", () => {
    fc.assert(
      fc.property(
        threeGrants,
        callerRestricted,
        anyRestricted,
        ({ own, requested }, callerUse, { disabled: _, ...restricted }) => {
          const caller = { application: toRecord("private", { ...own, ...callerUse }) };
          const created = toRecord("private", { ...requested, ...restricted, disabled: false });
          if (accepts(() => guard.assertMayCreate(caller, created))) {
            const limit = rankUses(caller.application, [caller.application]);
            expect(exceeds(rankUses(created, [created]), limit)).toBe(false);
          }
        },
      ),
      { numRuns: 1_500 },
    );
  });
});

describe("a session", () => {
  it("gives no more than its own decisions, which its authorizer limits, for every token", () => {
    const sessionGrants = grantsWith(fc.oneof(containerRule, conditionRule));
    let accepted = 0;
    fc.assert(
      fc.property(sessionGrants, threeGrants, (own, { own: boundary, current, requested }) => {
        const caller: Caller = {
          application: toRecord("public", { ...noGrants, ...unrestricted }),
          session: own as SessionRecord,
          boundary: toRecord("private", { ...boundary, ...unrestricted }),
        };
        const target = toRecord("private", { ...current, ...unrestricted });
        if (accepts(() => guard.assertMayChange(caller, target, requested))) {
          accepted++;
          const limit = rankAll([own, boundary]);
          expect(exceeds(rankAll([requested]), limit, rankAll([current]))).toBe(false);
        }
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

describe("a management application", () => {
  it("gives any permission of other services", () => {
    fc.assert(
      fc.property(threeGrants, callerRestricted, anyRestricted, (grants, callerUse, restricted) => {
        const caller = { application: toRecord("management", { ...noGrants, ...callerUse }) };
        const target = toRecord("private", { ...grants.current, ...restricted });
        const change = { ...grants.requested, expiresAt: null, allowedCidrs: [], disabled: false };
        expect(accepts(() => guard.assertMayChange(caller, target, change))).toBe(true);
      }),
    );
  });
});
