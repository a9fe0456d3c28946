import { setTimeout } from "node:timers/promises";
import type { Binary, Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { createGenerationalCache } from "../../lib/cache.js";
import type { ApplicationStore } from "../port/applications.js";
import type { SessionLimit } from "../port/change.js";
import { type SessionQuota, SessionQuotaReached } from "../port/errors.js";
import {
  authorizedFilter,
  byAuthorized,
  byNetwork,
  byUnauthorized,
  unauthorizedFilter,
} from "./collections.js";
import { fromUuid, type SessionDocument, toBinary, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

interface AuthorizerGroup {
  readonly _id: { readonly authorized_by: Binary; readonly authorization_epoch: number };
  readonly count: number;
}

/** Limits the number of open sessions of an application. */
export interface SessionQuotas {
  /**
   * Resolves when a session may be created or authorized. Call the returned function
   * when that was done or has failed. Throws {@link SessionQuotaReached}.
   */
  reserve(counted: CountedSessions, limit: number): Promise<() => void>;
}

/** The sessions that a quota limits, of one application and epoch. */
interface CountedSessions {
  readonly quota: SessionQuota;
  /** Identifies them. */
  readonly name: string;
  readonly filter: Document;
  /** An index that covers the filter, the expiry and what {@link createSessionQuotas} groups by. */
  readonly hint: Readonly<Record<string, 1>>;
}

const conditions = {
  authorized: { filter: authorizedFilter, hint: byAuthorized },
  unauthorized: { filter: unauthorizedFilter, hint: byUnauthorized },
};

/** The sessions that count towards a limit. */
export function countedSessions(limit: SessionLimit): CountedSessions {
  const { quota, applicationId, epoch, networkHash = new Uint8Array() } = limit;
  const { filter, hint } =
    quota === "network"
      ? { filter: { network_hash: toBinary(networkHash) }, hint: byNetwork }
      : conditions[quota];
  return {
    quota,
    name: `${quota} ${applicationId} ${epoch} ${Buffer.from(networkHash).toString("hex")}`,
    filter: { application_id: uuid(applicationId), epoch, ...filter },
    hint,
  };
}

/** The state of this process for one quota. */
interface Allowance {
  /** How many sessions may be opened before the next count. */
  left: number;
  /** How many sessions this process has admitted, and how many of them have succeeded or failed. */
  admitted: number;
  settled: number;
  counting?: Promise<Count> | undefined;
  nextCount?: Promise<Count> | undefined;
}

interface Count {
  /** Matches the sessions that were open at the time of the count. */
  readonly filter: Document;
  readonly hint: CountedSessions["hint"];
  readonly open: number;
  readonly takenAt: number;
  /** How many sessions of this process were settled before the count, which includes them. */
  readonly settledBefore: number;
}

/** Quotas in each of the two generations of the cache. */
const generationSize = 10_000;

/** The share of the remaining quota that is admitted without another count, but at least one session. */
const shareOfRemaining = 1 / 20;

/** The maximum that is admitted without another count, as a share of the quota. */
const shareOfQuota = 1 / 100;

/** How long to wait for sessions that are being created, in milliseconds. */
const pollInterval = 5;

/**
 * Counts sessions in the database, then admits some without another count. Other
 * processes can therefore exceed the quota, each by at most 1 % of it plus the
 * sessions that it is creating. A call is refused only by a count that started
 * after the call.
 */
export function createSessionQuotas(
  documents: Collection<SessionDocument>,
  applications: Pick<ApplicationStore, "findMany">,
  now: () => MaybePromise<number>,
): SessionQuotas {
  const allowances = createGenerationalCache<Allowance>(generationSize, 1);

  function allowanceOf({ name }: CountedSessions, quota: number): Allowance {
    const allowance = { left: 0, admitted: 0, settled: 0 };
    return allowances.get(name, quota) ?? allowances.add(name, quota, allowance, 1);
  }

  async function countOpen(
    { quota, filter: counted, hint }: CountedSessions,
    limit: number,
    { settled: settledBefore }: Allowance,
  ): Promise<Count> {
    const takenAt = await now();
    // A comparison with $$NOW would read the documents; this one needs only the index.
    const filter = { ...counted, expires_at: { $gt: new Date(takenAt) } };
    if (quota === "authorized") {
      return { ...(await countLive(filter)), hint, takenAt, settledBefore };
    }
    const options = { limit, hint, ...limitsOf(documents) };
    const open = await callDriver(() => documents.countDocuments(filter, options));
    return { filter, open, hint, takenAt, settledBefore };
  }

  /** Counts authorized sessions, without those that were revoked with their authorizer or by its epoch. */
  async function countLive(filter: Document): Promise<Pick<Count, "filter" | "open">> {
    const _id = { authorized_by: "$authorized_by", authorization_epoch: "$authorization_epoch" };
    const pipeline = [{ $match: filter }, { $group: { _id, count: { $sum: 1 } } }];
    const options = { hint: byAuthorized, ...limitsOf(documents) };
    const groups = await callDriver(() =>
      documents.aggregate<AuthorizerGroup>(pipeline, options).toArray(),
    );
    const authorizers = await applications.findMany(
      groups.map(({ _id }) => fromUuid(_id.authorized_by)),
    );
    const isLive = ({ _id }: AuthorizerGroup, index: number) =>
      authorizers[index]?.authorizationEpoch === _id.authorization_epoch;
    const dead = groups.filter((group, index) => !isLive(group, index)).map(({ _id }) => _id);
    const open = groups.filter(isLive).reduce((total, { count }) => total + count, 0);
    return { filter: { ...filter, ...(dead.length > 0 && { $nor: dead }) }, open };
  }

  /** Calls that arrive during a count share the next one. */
  function count(counted: CountedSessions, limit: number, allowance: Allowance): Promise<Count> {
    const start = () => {
      const counting = countOpen(counted, limit, allowance).finally(() => {
        allowance.counting = undefined;
      });
      allowance.counting = counting;
      return counting;
    };
    if (!allowance.counting) {
      return start();
    }
    allowance.nextCount ??= allowance.counting
      .catch(() => {})
      .then(() => {
        allowance.nextCount = undefined;
        return start();
      });
    return allowance.nextCount;
  }

  /** The milliseconds until the first session of a count expires. */
  async function waitAfter({ filter, hint, takenAt }: Count): Promise<number> {
    const projection = { _id: 0, expires_at: 1 };
    const options = { sort: { expires_at: 1 }, projection, hint, ...limitsOf(documents) } as const;
    const first = await callDriver(() => documents.findOne(filter, options));
    return first ? first.expires_at.getTime() - takenAt : 1;
  }

  return {
    async reserve(sessions, quota) {
      const allowance = allowanceOf(sessions, quota);
      while (allowance.left === 0) {
        const counted = await count(sessions, quota, allowance);
        if (counted.open >= quota) {
          throw new SessionQuotaReached(sessions.quota, quota, await waitAfter(counted));
        }
        const remaining = quota - counted.open - (allowance.admitted - counted.settledBefore);
        if (remaining > 0) {
          const share = Math.min(remaining * shareOfRemaining, quota * shareOfQuota);
          allowance.left = Math.max(1, Math.floor(share));
        } else {
          await setTimeout(pollInterval);
        }
      }
      allowance.left--;
      allowance.admitted++;
      return () => {
        allowance.settled++;
      };
    },
  };
}
