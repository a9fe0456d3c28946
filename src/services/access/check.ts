import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CheckAccessRequest,
  type CheckAccessResponse,
  type DecidedBy,
  type GrantDecision,
  GrantDecisionSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  createAuthenticate,
  createAuthenticateMany,
  createIdentifyInactive,
  type InactiveKey,
} from "../../auth/authenticate.js";
import { type Caller, callerHolds, expiryOf } from "../../auth/caller.js";
import type { Keyring } from "../../auth/keys.js";
import type { LastUsedTracker } from "../../auth/last-used.js";
import type { GrantPolicy } from "../../config/settings.js";
import {
  type Decision,
  decide,
  type LimitedBy,
  stricterOf,
} from "../../contract/decisions/decide.js";
import { type DenialReason, explainDenial } from "../../contract/decisions/explain.js";
import { createRestrictionCheck } from "../../contract/decisions/restrictions.js";
import { isOwnPermission } from "../../contract/methods.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import type { Store } from "../../store/port/store.js";
import { toTimestamp } from "../../validation/time.js";
import { createGrantCache, type GrantsRecord } from "./grant-cache.js";

/** A complete message, which is encoded without a copy: a batch has many. */
export type CheckResult = CheckAccessResponse;

/** Evaluates access checks on keys of the caller's tenant. */
interface Checks {
  one(caller: Caller, request: CheckAccessRequest): MaybePromise<CheckResult>;

  /** Evaluates many checks. The result of an invalid check is its problem. */
  many(caller: Caller, requests: readonly (CheckAccessRequest | Problem)[]): Promise<CheckResult[]>;
}

interface CheckOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly lastUsed: Pick<LastUsedTracker, "record">;
  readonly grantPolicy: GrantPolicy;
}

export function createChecks({ store, keyring, lastUsed, grantPolicy }: CheckOptions): Checks {
  const identify = createAuthenticate(store, keyring, grantPolicy);
  const identifyMany = createAuthenticateMany(store, keyring, grantPolicy);
  const identifyInactive = createIdentifyInactive(store, keyring);
  const compiledGrantsOf = createGrantCache();
  const restrictionCheck = createRestrictionCheck();
  const checkedNow = createCheckedAt(store);

  function evaluate({ subject, inactiveReason }: Lookup, request: CheckAccessRequest): Evaluation {
    if (!subject || inactiveReason) {
      return { allowed: false, reason: inactiveReason ?? "unknown_key" };
    }
    if (!restrictionCheck.allowsOrigin(subject.application, request.origin)) {
      return { allowed: false, reason: "origin_not_allowed" };
    }
    if (!restrictionCheck.allowsAddress(subject.application, request.address)) {
      return { allowed: false, reason: "address_not_allowed" };
    }
    if (subject.session && subject.session.authorizedAt === undefined) {
      return { allowed: false, reason: "not_authorized" };
    }
    const own = decideBy(subject.session ?? subject.application, request);
    if (!subject.boundary) {
      return own;
    }
    const byAuthorizer = decideBy(subject.boundary, request);
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

  function decideBy(record: GrantsRecord, { permission, token }: CheckAccessRequest): Decision {
    return decide(compiledGrantsOf(record), permission, token, isOwnPermission(permission));
  }

  function toResult(
    lookup: Lookup,
    request: CheckAccessRequest,
    checkedAt: Timestamp,
  ): CheckResult {
    const { subject, inactiveReason } = lookup;
    // An invalid key is invalid from every origin and address.
    const restrictions = inactiveReason ? undefined : subject?.application;
    const evaluation = evaluate(lookup, request);
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
          subject,
          request,
        ),
      applicationId: subject?.application.id,
      sessionId: subject?.session?.id,
      authorizedBy: subject?.session?.authorizedBy,
      ...evaluation.sessionDecisions,
      expiresAt: toTimestamp(subject && expiryOf(subject)),
      checkedAt,
      dependsOnOrigin: trueIfNotEmpty(restrictions?.allowedOrigins),
      dependsOnAddress: trueIfNotEmpty(restrictions?.allowedCidrs),
    } as CheckResult;
  }

  /** Evaluates a check. If the key is invalid, looks up whom it belonged to. */
  function checkSubject(
    subject: Caller | undefined,
    caller: Caller,
    request: CheckAccessRequest,
    checkedAt: Timestamp,
  ): MaybePromise<CheckResult> {
    const { tenantId } = caller.application;
    if (subject?.application.tenantId === tenantId) {
      lastUsed.record(subject);
      return toResult({ subject }, request, checkedAt);
    }
    return mapMaybePromise(identifyInactive(request.key), (inactive) => {
      const isVisible =
        inactive?.owner.application.tenantId === tenantId && maySee(caller, inactive.reason);
      const lookup = isVisible ? { subject: inactive.owner, inactiveReason: inactive.reason } : {};
      return toResult(lookup, request, checkedAt);
    });
  }

  return {
    one(caller, request) {
      return mapMaybePromise(checkedNow(), (now) =>
        mapMaybePromise(identify(request.key), (subject) =>
          checkSubject(subject, caller, request, toTimestamp(now)),
        ),
      );
    },

    async many(caller, requests) {
      const checkedAt = toTimestamp(await checkedNow());
      const subjects = await identifyMany(requests.map(keyIn));
      const results = requests.map((request, index) => {
        if (request instanceof Problem) {
          const { problemCode: reason, rawMessage: detail } = request;
          return {
            $typeName: "latchkey.v1.CheckAccessResponse",
            allowed: false,
            reason,
            detail,
            checkedAt,
          } satisfies CheckResult;
        }
        return checkSubject(subjects[index], caller, request, checkedAt);
      });
      return results.some((result) => result instanceof Promise)
        ? Promise.all(results)
        : (results as CheckResult[]);
    },
  };
}

function keyIn(request: CheckAccessRequest | Problem): string {
  return request instanceof Problem ? "" : request.key;
}

/** The owner of the checked key. */
interface Lookup {
  readonly subject?: Caller;
  /** Why the key is invalid; absent if it is valid. */
  readonly inactiveReason?: InactiveKey["reason"];
}

function toDecidedBy({ decidedBy }: Extract<Decision, { allowed: true }>): DecidedBy {
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

/** Only callers that can read applications may see that one is disabled. */
function maySee(caller: Caller, reason: InactiveKey["reason"]): boolean {
  return reason !== "disabled" || callerHolds(caller, "application:read");
}

type Evaluation = (Decision | { readonly allowed: false; readonly reason: DenialReason }) & {
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
function createCheckedAt({ now }: Pick<Store, "now">): () => MaybePromise<number> {
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
