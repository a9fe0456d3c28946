import { setTimeout } from "node:timers/promises";
import type { Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { createGenerationalCache } from "../../lib/cache.js";
import { SessionQuotaReached } from "../port/errors.js";
import type { ApplicationRecord } from "../port/records.js";
import { byOpenSession } from "./collections.js";
import { type SessionDocument, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

/** Limits the number of open sessions of an application. */
interface SessionQuotas {
  /**
   * Resolves when a session may be opened. Call the returned function when the
   * session was created or has failed. Throws {@link SessionQuotaReached}.
   */
  reserve(application: ApplicationRecord, quota: number): Promise<() => void>;
}

/** The state of this process for one application and epoch. */
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
  readonly open: number;
  readonly takenAt: number;
  /** How many sessions of this process were settled before the count, which includes them. */
  readonly settledBefore: number;
}

/** Applications in each of the two generations of the cache. */
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
  now: () => MaybePromise<number>,
): SessionQuotas {
  const allowances = createGenerationalCache<Allowance>(generationSize, 1);

  function allowanceOf({ id, sessionEpoch }: ApplicationRecord, quota: number): Allowance {
    const name = `${id} ${sessionEpoch}`;
    const allowance = { left: 0, admitted: 0, settled: 0 };
    return allowances.get(name, quota) ?? allowances.add(name, quota, allowance, 1);
  }

  async function countOpen(
    { id, sessionEpoch }: ApplicationRecord,
    quota: number,
    { settled: settledBefore }: Allowance,
  ): Promise<Count> {
    const takenAt = await now();
    const filter = {
      application_id: uuid(id),
      // A comparison with $$NOW would read the documents; this one needs only the index.
      expires_at: { $gt: new Date(takenAt) },
      epoch: sessionEpoch,
    };
    const options = { limit: quota, hint: byOpenSession, ...limitsOf(documents) };
    const open = await callDriver(() => documents.countDocuments(filter, options));
    return { filter, open, takenAt, settledBefore };
  }

  /** Calls that arrive during a count share the next one. */
  function count(
    application: ApplicationRecord,
    quota: number,
    allowance: Allowance,
  ): Promise<Count> {
    const start = () => {
      const counting = countOpen(application, quota, allowance).finally(() => {
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
  async function waitAfter({ filter, takenAt }: Count): Promise<number> {
    const projection = { _id: 0, expires_at: 1 };
    const options = {
      sort: byOpenSession,
      projection,
      hint: byOpenSession,
      ...limitsOf(documents),
    };
    const first = await callDriver(() => documents.findOne(filter, options));
    return first ? first.expires_at.getTime() - takenAt : 1;
  }

  return {
    async reserve(application, quota) {
      const allowance = allowanceOf(application, quota);
      while (allowance.left === 0) {
        const counted = await count(application, quota, allowance);
        if (counted.open >= quota) {
          throw new SessionQuotaReached(await waitAfter(counted));
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
