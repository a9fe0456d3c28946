import { setTimeout } from "node:timers/promises";
import type { Collection, Document } from "mongodb";
import { createGenerationalCache } from "../../lib/cache.js";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import { SessionQuotaReached } from "../port/errors.js";
import type { ApplicationRecord } from "../port/records.js";
import { byOpenSession } from "./collections.js";
import { type SessionDocument, uuid } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";

/** Keeps applications to the number of sessions that they may have open. */
export interface SessionQuotas {
  /**
   * Resolves when a session may be opened, with a function to call once it is
   * there, or once it is not going to be. Throws {@link SessionQuotaReached}.
   */
  reserve(application: ApplicationRecord, quota: number): Promise<() => void>;
}

/** What this process knows of the sessions that an application opened since they were last revoked. */
interface Allowance {
  /** How many more may be opened before they are counted again. */
  left: number;
  /** How many this process has let be opened, and of how many of them the outcome is known. */
  admitted: number;
  settled: number;
  counting?: Promise<Count> | undefined;
  nextCount?: Promise<Count> | undefined;
}

interface Count {
  /** What matches the open sessions when it was taken, and how many these were. */
  readonly filter: Document;
  readonly open: number;
  readonly takenAt: number;
  /** How many sessions of this process were settled before it was taken, and so are in it. */
  readonly settledBefore: number;
}

/** How many applications each of two generations may hold. */
const generationSize = 10_000;

/**
 * How many sessions are opened without another count: this part of the room
 * that there is, at most this part of the quota, and at least one.
 */
const shareOfRemaining = 1 / 20;
const shareOfQuota = 1 / 100;

/** How long to wait for sessions that are being opened, in milliseconds. */
const pollInterval = 5;

/**
 * Counts sessions in the database, and then opens some without another count.
 * So the quota is exceeded by what other processes open between two counts of
 * this one: each of them at most 1 % of the quota, and the sessions that it is
 * just opening. Nobody is refused but by a count that began after the call.
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
      // To compare with $$NOW would take the documents, and not only their keys in the index.
      expires_at: { $gt: new Date(takenAt) },
      epoch: sessionEpoch,
    };
    const options = { limit: quota, hint: byOpenSession, ...limits };
    const open = await callDriver(() => documents.countDocuments(filter, options));
    return { filter, open, takenAt, settledBefore };
  }

  /** Those that come while one count is under way share the next. */
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

  /** In how many milliseconds the first session of a count expires. */
  async function waitAfter({ filter, takenAt }: Count): Promise<number> {
    const projection = { _id: 0, expires_at: 1 };
    const options = { sort: byOpenSession, projection, hint: byOpenSession, ...limits };
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
        const room = quota - counted.open - (allowance.admitted - counted.settledBefore);
        if (room > 0) {
          const share = Math.min(room * shareOfRemaining, quota * shareOfQuota);
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
