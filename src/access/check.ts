import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type {
  CheckAccessRequest,
  CheckAccessResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { type Awaitable, whenThere } from "../awaitable.js";
import { type Caller, endOf } from "../caller.js";
import { isOwnPermission } from "../contract.js";
import { Problem } from "../errors.js";
import { createIdentify, createIdentifyExpired, createIdentifyMany } from "../identify.js";
import type { Keyring } from "../keys.js";
import { toTimestamp } from "../moments.js";
import type { Clock, Store } from "../store/store.js";
import { createCompiledGrants } from "./compiled-grants.js";
import { type Decision, decide } from "./decide.js";
import { type DenialReason, explainDenial } from "./explain.js";

export type CheckAnswer = MessageInitShape<typeof CheckAccessResponseSchema>;

/** Decides checks in a tenant. */
export interface Checks {
  one(tenantId: string, request: CheckAccessRequest): Awaitable<CheckAnswer>;

  /** Decides many at once. Where one has a fault, that is its answer. */
  many(
    tenantId: string,
    requests: readonly (CheckAccessRequest | Problem)[],
  ): Promise<CheckAnswer[]>;
}

interface CheckOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

export function createChecks({ store, keyring, clock }: CheckOptions): Checks {
  const identify = createIdentify(store, keyring);
  const identifyMany = createIdentifyMany(store, keyring);
  const identifyExpired = createIdentifyExpired(store, keyring);
  const compiledGrantsOf = createCompiledGrants();

  function judge({ subject, isExpired }: Found, request: CheckAccessRequest): Judgement {
    if (!subject) {
      return { allowed: false, reason: "unknown_key" };
    }
    if (isExpired) {
      return { allowed: false, reason: "expired" };
    }
    if (subject.session && subject.session.authorizedAt === undefined) {
      return { allowed: false, reason: "not_authorized" };
    }
    const grants = compiledGrantsOf(subject.session ?? subject.application);
    const { permission, token } = request;
    return decide(grants, permission, token, isOwnPermission(permission));
  }

  function answer(found: Found, request: CheckAccessRequest, checkedAt: Timestamp): CheckAnswer {
    const { subject } = found;
    const judgement = judge(found, request);
    const grant = judgement.allowed ? judgement : undefined;
    const denial = judgement.allowed ? undefined : judgement;
    return {
      allowed: judgement.allowed,
      transform: grant?.transform,
      decidedBy: grant?.decidedBy,
      reason: denial?.reason,
      detail: denial && explainDenial(denial.reason, subject, request),
      applicationId: subject?.application.id,
      sessionId: subject?.session?.id,
      expiresAt: toTimestamp(subject && endOf(subject)),
      checkedAt,
    };
  }

  /** Judges a subject, or what is left of it where its key does not work. */
  function answerFor(
    subject: Caller | undefined,
    tenantId: string,
    request: CheckAccessRequest,
    checkedAt: Timestamp,
  ): Awaitable<CheckAnswer> {
    if (subject?.application.tenantId === tenantId) {
      return answer({ subject, isExpired: false }, request, checkedAt);
    }
    return whenThere(identifyExpired(request.key), (expired) =>
      expired?.application.tenantId === tenantId
        ? answer({ subject: expired, isExpired: true }, request, checkedAt)
        : answer({ subject: undefined, isExpired: false }, request, checkedAt),
    );
  }

  return {
    one(tenantId, request) {
      const checkedAt = toTimestamp(clock());
      return whenThere(identify(request.key), (subject) =>
        answerFor(subject, tenantId, request, checkedAt),
      );
    },

    async many(tenantId, requests) {
      const checkedAt = toTimestamp(clock());
      const subjects = await identifyMany(requests.map(keyIn));
      const answers = requests.map((request, at) => {
        if (request instanceof Problem) {
          const { word: reason, rawMessage: detail } = request;
          return { allowed: false, reason, detail, checkedAt };
        }
        return answerFor(subjects[at], tenantId, request, checkedAt);
      });
      return answers.some((answer) => answer instanceof Promise)
        ? Promise.all(answers)
        : (answers as CheckAnswer[]);
    },
  };
}

function keyIn(request: CheckAccessRequest | Problem): string {
  return request instanceof Problem ? "" : request.key;
}

/** What is known of the key that a check is about. */
interface Found {
  readonly subject: Caller | undefined;
  readonly isExpired: boolean;
}

type Judgement = Decision | { readonly allowed: false; readonly reason: DenialReason };
