import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type {
  CheckAccessRequest,
  CheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  createIdentify,
  createIdentifyMany,
  createIdentifyRefused,
  type Refused,
} from "../../auth/authenticate.js";
import { type Caller, callerHolds, endOf } from "../../auth/caller.js";
import type { Keyring } from "../../auth/keys.js";
import type { Uses } from "../../auth/last-used.js";
import type { GrantPolicy } from "../../config/settings.js";
import {
  type Decision,
  decide,
  type LimitedBy,
  stricterOf,
} from "../../contract/decisions/decide.js";
import { type DenialReason, explainDenial } from "../../contract/decisions/explain.js";
import { createPlaceCheck } from "../../contract/decisions/restrictions.js";
import { isOwnPermission } from "../../contract/methods.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import type { Store } from "../../store/port/store.js";
import { toTimestamp } from "../../validation/time.js";
import { createGrantCache, type GrantsRecord } from "./grant-cache.js";

export type CheckResult = MessageInitShape<typeof CheckAccessResponseSchema>;

/** Decides checks for a caller, about keys of its tenant. */
interface Checks {
  one(asker: Caller, request: CheckAccessRequest): MaybePromise<CheckResult>;

  /** Decides many at once. Where one has a fault, that is its answer. */
  many(asker: Caller, requests: readonly (CheckAccessRequest | Problem)[]): Promise<CheckResult[]>;
}

interface CheckOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly uses: Pick<Uses, "note">;
  readonly grantPolicy: GrantPolicy;
}

export function createChecks({ store, keyring, uses, grantPolicy }: CheckOptions): Checks {
  const identify = createIdentify(store, keyring, grantPolicy);
  const identifyMany = createIdentifyMany(store, keyring, grantPolicy);
  const identifyRefused = createIdentifyRefused(store, keyring);
  const compiledGrantsOf = createGrantCache();
  const placeCheck = createPlaceCheck();
  const checkedNow = createCheckedAt(store);

  function judge({ subject, refusal }: Found, request: CheckAccessRequest): Judgement {
    if (!subject || refusal) {
      return { allowed: false, reason: refusal ?? "unknown_key" };
    }
    if (!placeCheck.allowsOrigin(subject.application, request.origin)) {
      return { allowed: false, reason: "origin_not_allowed" };
    }
    if (!placeCheck.allowsAddress(subject.application, request.address)) {
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
    return { ...decision, sides: { bySession: own, byAuthorizer, limitedBy } };
  }

  function decideBy(record: GrantsRecord, { permission, token }: CheckAccessRequest): Decision {
    return decide(compiledGrantsOf(record), permission, token, isOwnPermission(permission));
  }

  function answer(found: Found, request: CheckAccessRequest, checkedAt: Timestamp): CheckResult {
    const { subject, refusal } = found;
    // That a key does not work is so everywhere.
    const limits = refusal ? undefined : subject?.application;
    const judgement = judge(found, request);
    const grant = judgement.allowed ? judgement : undefined;
    const denial = judgement.allowed ? undefined : judgement;
    return {
      allowed: judgement.allowed,
      transform: grant?.transform,
      decidedBy: grant?.decidedBy,
      reason: denial?.reason,
      detail:
        denial &&
        explainDenial(
          { reason: denial.reason, limitedBy: denial.sides?.limitedBy },
          subject,
          request,
        ),
      applicationId: subject?.application.id,
      sessionId: subject?.session?.id,
      authorizedBy: subject?.session?.authorizedBy,
      ...judgement.sides,
      expiresAt: toTimestamp(subject && endOf(subject)),
      checkedAt,
      dependsOnOrigin: isLimited(limits?.allowedOrigins),
      dependsOnAddress: isLimited(limits?.allowedCidrs),
    };
  }

  /** Judges a subject, or what is left of it where its key does not work. */
  function answerFor(
    subject: Caller | undefined,
    asker: Caller,
    request: CheckAccessRequest,
    checkedAt: Timestamp,
  ): MaybePromise<CheckResult> {
    const { tenantId } = asker.application;
    if (subject?.application.tenantId === tenantId) {
      uses.note(subject);
      return answer({ subject }, request, checkedAt);
    }
    return mapMaybePromise(identifyRefused(request.key), (refused) => {
      const isKnown =
        refused?.owner.application.tenantId === tenantId && mayBeTold(asker, refused.why);
      const found = isKnown ? { subject: refused.owner, refusal: refused.why } : {};
      return answer(found, request, checkedAt);
    });
  }

  return {
    one(asker, request) {
      return mapMaybePromise(checkedNow(), (moment) =>
        mapMaybePromise(identify(request.key), (subject) =>
          answerFor(subject, asker, request, toTimestamp(moment)),
        ),
      );
    },

    async many(asker, requests) {
      const checkedAt = toTimestamp(await checkedNow());
      const subjects = await identifyMany(requests.map(keyIn));
      const answers = requests.map((request, at) => {
        if (request instanceof Problem) {
          const { word: reason, rawMessage: detail } = request;
          return { allowed: false, reason, detail, checkedAt };
        }
        return answerFor(subjects[at], asker, request, checkedAt);
      });
      return answers.some((answer) => answer instanceof Promise)
        ? Promise.all(answers)
        : (answers as CheckResult[]);
    },
  };
}

function keyIn(request: CheckAccessRequest | Problem): string {
  return request instanceof Problem ? "" : request.key;
}

/** What is known of the key that a check is about. */
interface Found {
  readonly subject?: Caller;
  /** Why the key does not work; absent where it does. */
  readonly refusal?: Refused["why"];
}

/** Whether there is something in a list, said only where there is. */
function isLimited(list: readonly string[] | undefined): true | undefined {
  return list && list.length > 0 ? true : undefined;
}

/** That an application is disabled is for those who could look it up. */
function mayBeTold(asker: Caller, why: Refused["why"]): boolean {
  return why !== "disabled" || callerHolds(asker, "application:read");
}

type Judgement = (Decision | { readonly allowed: false; readonly reason: DenialReason }) & {
  /** Where the subject is a session that may do only what its authorizer may do too. */
  readonly sides?: Sides;
};

interface Sides {
  readonly bySession: Decision;
  readonly byAuthorizer: Decision;
  readonly limitedBy: LimitedBy;
}

/** For how many milliseconds the word of a store is good that has to be waited for. */
const lifetime = 1_000;

interface Known {
  readonly moment: number;
  /** As `performance.now()` tells time. */
  readonly askedAt: number;
}

/**
 * Tells when a check is decided, by the clock that judges when keys end: who
 * keeps an answer until its key ends takes one from the other. To ask a
 * database each time would cost as much as the check, so its word is carried
 * on for a while, counted from when it was asked: never too early.
 */
function createCheckedAt({ now }: Pick<Store, "now">): () => MaybePromise<number> {
  let known: Known | undefined;
  let asking: Promise<number> | undefined;

  async function wait(answer: Promise<number>, askedAt: number): Promise<number> {
    try {
      const moment = await answer;
      known = { moment, askedAt };
      return carriedOn(known);
    } finally {
      asking = undefined;
    }
  }

  return () => {
    if (known && performance.now() - known.askedAt < lifetime) {
      return carriedOn(known);
    }
    if (asking) {
      return asking;
    }
    const askedAt = performance.now();
    const answer = now();
    if (answer instanceof Promise) {
      asking = wait(answer, askedAt);
      return asking;
    }
    return answer;
  };
}

function carriedOn({ moment, askedAt }: Known): number {
  return Math.ceil(moment + performance.now() - askedAt);
}
