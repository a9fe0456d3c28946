import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CheckAccessRequest,
  CheckAccessResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { type Caller, endOf } from "../caller.js";
import { isOwnPermission } from "../contract.js";
import { createIdentify, createIdentifyExpired } from "../identify.js";
import type { Keyring } from "../keys.js";
import { toTimestamp } from "../moments.js";
import type { Clock, Store } from "../store/store.js";
import { createCompiledGrants } from "./compiled-grants.js";
import { type Decision, decide } from "./decide.js";
import { type DenialReason, explainDenial } from "./explain.js";

export type CheckAnswer = MessageInitShape<typeof CheckAccessResponseSchema>;

/** Decides a check in a tenant. */
export type Check = (tenantId: string, request: CheckAccessRequest) => Promise<CheckAnswer>;

interface CheckOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

export function createCheck({ store, keyring, clock }: CheckOptions): Check {
  const identify = createIdentify(store, keyring);
  const identifyExpired = createIdentifyExpired(store, keyring);
  const compiledGrantsOf = createCompiledGrants();

  async function find(tenantId: string, key: string): Promise<Found> {
    const subject = await identify(key);
    if (subject?.application.tenantId === tenantId) {
      return { subject, isExpired: false };
    }
    const expired = await identifyExpired(key);
    return expired?.application.tenantId === tenantId
      ? { subject: expired, isExpired: true }
      : { subject: undefined, isExpired: false };
  }

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

  return async (tenantId, request) => {
    const checkedAt = toTimestamp(clock());
    const found = await find(tenantId, request.key);
    const { subject } = found;
    return {
      ...toAnswer(judge(found, request), subject, request),
      applicationId: subject?.application.id,
      sessionId: subject?.session?.id,
      expiresAt: toTimestamp(subject && endOf(subject)),
      checkedAt,
    };
  };
}

/** What is known of the key that a check is about. */
interface Found {
  readonly subject: Caller | undefined;
  readonly isExpired: boolean;
}

type Judgement = Decision | { readonly allowed: false; readonly reason: DenialReason };

function toAnswer(
  judgement: Judgement,
  subject: Caller | undefined,
  request: CheckAccessRequest,
): CheckAnswer {
  if (!judgement.allowed) {
    const { reason } = judgement;
    return { allowed: false, reason, detail: explainDenial(reason, subject, request) };
  }
  const { transform, decidedBy } = judgement;
  return { allowed: true, transform, decidedBy };
}
