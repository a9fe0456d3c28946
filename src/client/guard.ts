import { timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type {
  AccessService,
  CheckAccessResponse,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { problemOf } from "../contract/problem-report.js";
import {
  everything,
  type GuardAnswer,
  type Place,
  placedId,
  type Question,
  readQuestion,
  subjectIn,
  type Token,
} from "./check-request.js";
import type { CredentialWatch } from "./credential-watch.js";
import type { AnswerCache } from "./decision-cache.js";
import { recall, remember } from "./decision-cache.js";

/** Answers for the keys that come to your service what they may do. */
export interface Guard {
  /**
   * Answers whether a key may do something, with a token or without. It never
   * throws: what cannot be found out is not allowed. Neither is a key that may
   * be used from some places only, where the place is not given.
   */
  check(key: string, permission: string, token?: Token, place?: Place): Promise<GuardAnswer>;

  /** Resolves when the cache is in use, or the guard is closed. There is no need to wait for it. */
  ready(): Promise<void>;

  /** Lets go of all connections. Whatever is asked later is not allowed. */
  close(): Promise<void>;
}

interface GuardParts {
  readonly access: Pick<Client<typeof AccessService>, "checkAccess">;
  readonly watch: CredentialWatch;
  readonly cache: AnswerCache<GuardAnswer>;
  /** How old knowledge may be to be answered from the cache, in milliseconds. */
  readonly maxStaleness: number;
  /** How long the service may take to answer, in milliseconds. */
  readonly timeout: number;
  /** Tells time in milliseconds, and only forward. */
  readonly now: () => number;
}

/** A question that the service was asked and has not answered yet. */
interface Asking {
  readonly asked: number;
  readonly epoch: number;
  readonly answer: Promise<GuardAnswer>;
}

/** Creates the guard without its connections: who makes those also ends them. */
export function createGuardFromParts(parts: GuardParts): Guard {
  const { access, watch, cache, maxStaleness, timeout, now } = parts;
  const underWay = new Map<string, Asking>();
  let isClosed = false;

  function fromCache(question: Question): GuardAnswer | undefined {
    const moment = now();
    const staleness = moment - watch.completeUntil();
    const answer = staleness <= maxStaleness ? recall(cache, question, moment) : undefined;
    return answer && { ...answer, source: "cache", staleness };
  }

  async function fromService(question: Question, subject: string): Promise<GuardAnswer> {
    const { asked, answer } = joinable(question) ?? ask(question, subject);
    return { ...(await answer), staleness: now() - asked };
  }

  /** The same question under way, where its answer could as well come from the cache. */
  function joinable(question: Question): Asking | undefined {
    const asking = underWay.get(placedId(question, everything));
    const oldest = now() - maxStaleness;
    const isFresh =
      asking &&
      asking.asked >= oldest &&
      watch.completeUntil() >= oldest &&
      watch.epoch() === asking.epoch;
    return isFresh ? asking : undefined;
  }

  function ask(question: Question, subject: string): Asking {
    const id = placedId(question, everything);
    const asked = now();
    const epoch = watch.epoch();
    const answer = answerOf(question, subject, asked, epoch).finally(() => {
      if (underWay.get(id) === asking) {
        underWay.delete(id);
      }
    });
    const asking = { asked, epoch, answer };
    underWay.set(id, asking);
    return asking;
  }

  async function answerOf(
    question: Question,
    subject: string,
    asked: number,
    epoch: number,
  ): Promise<GuardAnswer> {
    const { key, permission, token, place } = question;
    const request = { key, permission, ...(token && { token }), ...place };
    const response = await access.checkAccess(request, { timeoutMs: timeout });
    const answer = toAnswer(response);
    const subjects = [subject, answer.applicationId, answer.sessionId, answer.authorizedBy];
    // What was told meanwhile may have happened before the service looked, or after.
    if (!isClosed && !watch.changedSince(epoch, subjects)) {
      remember(cache, question, { answer, subjects, asked, lifetime: lifetimeOf(response) });
    }
    return answer;
  }

  return {
    async check(key, permission, token, place) {
      if (isClosed) {
        return refusal("unavailable", "The guard is closed.");
      }
      try {
        const question = readQuestion(key, permission, token, place);
        if ("reason" in question) {
          return refusal(question.reason, question.detail);
        }
        const known = fromCache(question);
        if (known) {
          return known;
        }
        const subject = subjectIn(question);
        if (typeof subject !== "string") {
          return refusal(subject.reason, subject.detail);
        }
        return await fromService(question, subject);
      } catch (error) {
        return failClosed(error);
      }
    },

    ready: () => watch.ready(),

    async close() {
      isClosed = true;
      await watch.close();
      cache.clear();
    },
  };
}

function toAnswer(response: CheckAccessResponse): GuardAnswer {
  const { allowed, transform, decidedBy, reason, detail, applicationId, sessionId } = response;
  const { authorizedBy, limitedBy, dependsOnOrigin, dependsOnAddress } = response;
  return {
    ...{ allowed, transform, decidedBy, reason, detail, applicationId, sessionId },
    ...{ authorizedBy, limitedBy, dependsOnOrigin, dependsOnAddress },
    expiresAt: response.expiresAt && timestampDate(response.expiresAt),
    source: "service",
    staleness: 0,
  };
}

/** How long the answer stays true where nothing is changed: until the subject expires. */
function lifetimeOf({ reason, expiresAt, checkedAt }: CheckAccessResponse): number {
  if (!expiresAt || reason === "expired") {
    return Number.POSITIVE_INFINITY;
  }
  return checkedAt ? timestampMs(expiresAt) - timestampMs(checkedAt) : 0;
}

function failClosed(error: unknown): GuardAnswer {
  const { code, detail } = problemOf(error);
  if (ConnectError.from(error).code === Code.InvalidArgument) {
    return refusal("invalid_request", detail);
  }
  return refusal(
    "unavailable",
    `The service cannot be asked (${code ?? "unreachable"}): ${detail}`,
  );
}

function refusal(reason: string, detail: string): GuardAnswer {
  return { allowed: false, reason, detail, source: "guard", staleness: 0 };
}
