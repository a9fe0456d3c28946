import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CheckAccessRequest,
  type CheckAccessResponse,
  type DecidedBy,
  type GrantDecision,
  GrantDecisionSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Caller, expiryOf } from "../../auth/caller.js";
import {
  type DecidingRule,
  type Decision,
  type Denial,
  type DirectGrant,
  decide,
  type LimitedBy,
  stricterOf,
} from "../../contract/decisions/decide.js";
import { type DenialReason, explainDenial } from "../../contract/decisions/explain.js";
import { createRestrictionCheck } from "../../contract/decisions/restrictions.js";
import type { RuleRecord } from "../../contract/grants.js";
import { isOwnPermission } from "../../contract/methods.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import type { Pace } from "../../lib/event-loop.js";
import { hasNoAddress } from "../../lib/networks.js";
import type { Store } from "../../store/port/store.js";
import { readAddress } from "../../validation/address.js";
import { toTimestamp } from "../../validation/time.js";
import { ruleId } from "../rules.js";
import {
  type CachedGrants,
  type CachedGrantsOf,
  createGrantCache,
  type GrantsRecord,
  weightOf,
} from "./grant-cache.js";
import {
  type Principal,
  type Principals,
  type PrincipalsById,
  principalIdOf,
} from "./principals.js";

/** A complete message, which is encoded without a copy: a batch has many. */
export type CheckResult = CheckAccessResponse;

interface CheckOptions {
  readonly store: Pick<Store, "now">;
  readonly principals: Principals;
}

export interface CheckOutcome {
  readonly principal: Principal;
  /** The problem of a check that is not valid for its principal. */
  readonly result: CheckResult | Problem;
}

/** Evaluates access checks on applications and sessions of the caller's tenant. */
export interface Checks {
  /** Throws if the check is not valid for its principal. */
  evaluate(caller: Caller, request: CheckAccessRequest): MaybePromise<CheckResult>;

  /** Evaluates a check and returns its principal too. */
  evaluateWithPrincipal(caller: Caller, request: CheckAccessRequest): MaybePromise<CheckOutcome>;

  /**
   * Returns the principal of a check if its grants decide. Otherwise the check is denied, whatever the permission.
   * Throws if the check is not valid for its principal.
   */
  findActive(caller: Caller, request: CheckAccessRequest): MaybePromise<Caller | undefined>;

  /**
   * Opens a batch, whose parts have the same time of check and share their latest
   * principals: each is read once, and its grants are compiled once.
   */
  openBatch(caller: Caller, pace: Pace): EvaluatePart;
}

/** Evaluates a part of a batch. The result of an invalid check is its problem. */
export type EvaluatePart = (
  requests: readonly (CheckAccessRequest | Problem)[],
) => Promise<CheckResult[]>;

/** The weight of the grants that the parts of a batch share, which bounds its memory. */
const maxKnownWeight = 1024 * 1024;

/** The estimated weight of a principal without its grants. */
const principalWeight = 1_000;

export function createChecks({ store, principals }: CheckOptions): Checks {
  const grantCache = createGrantCache();
  const { findDenial } = createRestrictionCheck();
  const storeClock = createExtrapolatedClock(store);

  /** Returns the active owner, or why a check is denied before grants are considered. */
  function activeOwnerOf(
    { owner, inactiveReason }: Principal,
    request: CheckAccessRequest,
  ): Caller | DenialReason {
    if (!owner) {
      return request.principal.case === "key" ? "unknown_key" : "unknown_principal";
    }
    const denial = inactiveReason ?? findDenial(owner.application, request);
    if (denial) {
      return denial;
    }
    return owner.session && owner.session.authorizedAt === undefined ? "not_authorized" : owner;
  }

  function decideFor(
    principal: Principal,
    request: CheckAccessRequest,
    compiledGrantsOf: CachedGrantsOf,
  ): PrincipalDecision {
    const owner = activeOwnerOf(principal, request);
    if (typeof owner === "string") {
      return { allowed: false, reason: owner };
    }
    const own = decideBy(owner.session ?? owner.application, request, compiledGrantsOf);
    if (!owner.boundary) {
      return own;
    }
    const byAuthorizer = decideBy(owner.boundary, request, compiledGrantsOf);
    const { decision, limitedBy } = stricterOf(own, byAuthorizer);
    return {
      ...decision,
      sessionDecisions: {
        bySession: create(GrantDecisionSchema, own),
        byAuthorizer: create(GrantDecisionSchema, byAuthorizer),
        limitedBy,
      },
    };
  }

  function decideBy(
    record: GrantsRecord,
    { permission, token }: CheckAccessRequest,
    compiledGrantsOf: CachedGrantsOf,
  ): IdentifiedDecision {
    const grants = compiledGrantsOf(record);
    const decision = decide(grants, permission, token, isOwnPermission(permission));
    if (!decision.allowed || !("rule" in decision.decidedBy)) {
      return decision as Denial | DirectGrant;
    }
    const { transform, decidedBy } = decision;
    const { index } = decidedBy.rule;
    let id = grants.ruleIds.get(index);
    if (id === undefined) {
      id = ruleId(record.rules[index] as RuleRecord);
      grants.ruleIds.set(index, id);
    }
    return { allowed: true, transform, decidedBy: { rule: { ...decidedBy.rule, id } } };
  }

  function toResult(
    principal: Principal,
    request: CheckAccessRequest,
    checkedAt: Timestamp,
    compiledGrantsOf = grantCache,
  ): CheckResult {
    const { owner, inactiveReason } = principal;
    // An invalid key is invalid from every origin and address.
    const restrictions = inactiveReason ? undefined : owner?.application;
    const evaluation = decideFor(principal, request, compiledGrantsOf);
    const grant = evaluation.allowed ? evaluation : undefined;
    const denial = evaluation.allowed ? undefined : evaluation;
    return {
      $typeName: "latchkey.v1.CheckAccessResponse",
      allowed: evaluation.allowed,
      transform: grant?.transform,
      decidedBy: grant && toDecidedBy(grant),
      reason: denial?.reason,
      detail:
        denial &&
        explainDenial(
          { reason: denial.reason, limitedBy: denial.sessionDecisions?.limitedBy },
          owner,
          request,
        ),
      applicationId: owner?.application.id,
      sessionId: owner?.session?.id,
      authorizedBy: owner?.session?.authorizedBy,
      ...evaluation.sessionDecisions,
      expiresAt: toTimestamp(owner && expiryOf(owner)),
      checkedAt,
      dependsOnOrigin: trueIfNotEmpty(restrictions?.allowedOrigins),
      dependsOnAddress: trueIfNotEmpty(restrictions?.allowedCidrs),
    } as CheckResult;
  }

  function evaluateWithPrincipal(
    caller: Caller,
    request: CheckAccessRequest,
  ): MaybePromise<CheckOutcome> {
    return mapMaybePromise(storeClock(), (now) =>
      mapMaybePromise(principals.find(caller, request), (principal) => ({
        principal,
        result: refuseAddress(principal, request) ?? toResult(principal, request, toTimestamp(now)),
      })),
    );
  }

  return {
    evaluateWithPrincipal,

    findActive: (caller, request) =>
      mapMaybePromise(principals.find(caller, request), (principal) => {
        throwIfProblem(refuseAddress(principal, request));
        const owner = activeOwnerOf(principal, request);
        return typeof owner === "string" ? undefined : owner;
      }),

    evaluate: (caller, request) =>
      mapMaybePromise(evaluateWithPrincipal(caller, request), ({ result }) =>
        throwIfProblem(result),
      ),

    openBatch(caller, pace) {
      const compiledGrantsOf = createCompiledOnce(grantCache);
      const known = createKnownPrincipals();
      let checkedAt: Timestamp | undefined;
      return async (requests) => {
        checkedAt ??= toTimestamp(await storeClock());
        const valid = requests.flatMap((request) => (request instanceof Problem ? [] : request));
        const found = await principals.findMany(caller, valid, { known: known.principals, pace });
        known.add(found);
        const results: CheckResult[] = [];
        for (const request of requests) {
          const pause = pace();
          if (pause) {
            await pause;
          }
          if (request instanceof Problem) {
            results.push(toInvalid(request, checkedAt));
          } else {
            const principal = found.get(principalIdOf(request)) as Principal;
            const problem = refuseAddress(principal, request);
            results.push(
              problem
                ? toInvalid(problem, checkedAt)
                : toResult(principal, request, checkedAt, compiledGrantsOf),
            );
          }
        }
        return results;
      };
    },
  };
}

/** Keeps the latest principals of a batch, as long as their grants are small enough. */
function createKnownPrincipals() {
  const principals = new Map<string, Principal>();
  let weight = 0;
  return {
    principals: principals as PrincipalsById,

    add(found: PrincipalsById): void {
      for (const [id, principal] of found) {
        if (principals.has(id)) {
          continue;
        }
        const added = weightOfPrincipal(principal);
        if (weight + added > maxKnownWeight) {
          principals.clear();
          weight = 0;
        }
        if (added <= maxKnownWeight) {
          principals.set(id, principal);
          weight += added;
        }
      }
    },
  };
}

function weightOfPrincipal({ owner }: Principal): number {
  const grants = [owner?.application, owner?.session, owner?.boundary];
  return grants.reduce((sum, each) => sum + (each ? weightOf(each) : 0), principalWeight);
}

/** Compiles the grants of a record once as long as the record is in use, even if they are not cached. */
function createCompiledOnce(compiledGrantsOf: CachedGrantsOf): CachedGrantsOf {
  const compiled = new WeakMap<GrantsRecord, CachedGrants>();
  return (record) => {
    const known = compiled.get(record) ?? compiledGrantsOf(record);
    compiled.set(record, known);
    return known;
  };
}

/**
 * Refuses an address that cannot be parsed, if the principal is restricted to
 * networks: the caller made a mistake, and a denial would look like the principal's.
 */
function refuseAddress(
  { owner, inactiveReason }: Principal,
  request: CheckAccessRequest,
): Problem | undefined {
  if (!owner || inactiveReason || owner.application.allowedCidrs.length === 0) {
    return undefined;
  }
  const { address = "" } = request;
  const read = hasNoAddress(address) ? undefined : readAddress(address);
  return read instanceof Problem ? read : undefined;
}

function throwIfProblem<T>(value: T | Problem): T {
  if (value instanceof Problem) {
    throw value;
  }
  return value;
}

function toInvalid(
  { problemCode: reason, rawMessage: detail }: Problem,
  checkedAt: Timestamp,
): CheckResult {
  return {
    $typeName: "latchkey.v1.CheckAccessResponse",
    allowed: false,
    reason,
    detail,
    checkedAt,
  };
}

/** A decision with the id of the rule that decided. */
type IdentifiedDecision = Decision<DecidingRule & { readonly id: string }>;

function toDecidedBy({ decidedBy }: Extract<IdentifiedDecision, { allowed: true }>): DecidedBy {
  return "rule" in decidedBy
    ? {
        $typeName: "latchkey.v1.DecidedBy",
        rule: { $typeName: "latchkey.v1.DecidingRule", ...decidedBy.rule },
      }
    : { $typeName: "latchkey.v1.DecidedBy", permission: decidedBy.permission };
}

/** Omits the field in the response if the list is empty. */
function trueIfNotEmpty(list: readonly string[] | undefined): true | undefined {
  return list && list.length > 0 ? true : undefined;
}

type PrincipalDecision = (
  | IdentifiedDecision
  | { readonly allowed: false; readonly reason: DenialReason }
) & {
  /** Set for a session that its authorizer's grants limit. */
  readonly sessionDecisions?: SessionDecisions;
};

interface SessionDecisions {
  readonly bySession: GrantDecision;
  readonly byAuthorizer: GrantDecision;
  readonly limitedBy: LimitedBy;
}

/** Milliseconds for which a remote store's time is extrapolated. */
const syncInterval = 1_000;

interface ClockSample {
  readonly storeTime: number;
  /** By `performance.now()`. */
  readonly requestedAt: number;
}

/**
 * Returns the time of a check by the store's clock, which also decides when
 * keys expire: callers subtract the two to cache a result. Querying a database
 * for each check would cost as much as the check, so its time is extrapolated
 * from when it was requested, which is never too early.
 */
function createExtrapolatedClock({ now }: Pick<Store, "now">): () => MaybePromise<number> {
  let sample: ClockSample | undefined;
  let pending: Promise<number> | undefined;

  async function takeSample(storeNow: Promise<number>, requestedAt: number): Promise<number> {
    try {
      sample = { storeTime: await storeNow, requestedAt };
      return extrapolate(sample);
    } finally {
      pending = undefined;
    }
  }

  return () => {
    if (sample && performance.now() - sample.requestedAt < syncInterval) {
      return extrapolate(sample);
    }
    if (pending) {
      return pending;
    }
    const requestedAt = performance.now();
    const storeNow = now();
    if (storeNow instanceof Promise) {
      pending = takeSample(storeNow, requestedAt);
      return pending;
    }
    return storeNow;
  };
}

function extrapolate({ storeTime, requestedAt }: ClockSample): number {
  return Math.ceil(storeTime + performance.now() - requestedAt);
}
