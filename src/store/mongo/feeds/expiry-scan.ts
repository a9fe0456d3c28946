/** Scans for applications and sessions that have expired: MongoDB reports them only when it deletes them. */
import type { AggregateOptions, Binary, Db, Document } from "mongodb";
import { applicationsName, sessionsName } from "../collections.js";
import { fromUuid, maxDate, subjectOf, type Time } from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";
import { clusterTimeOf } from "./change-stream.js";
import type { TenantChange } from "./change-stream-filter.js";

/** The expirations since an earlier scan. */
export interface ExpiryScan {
  /** In order of expiry. */
  readonly expiries: readonly TenantChange[];
  /** The scan is complete up to this moment. */
  readonly until: number;
  /** Whether `until` is the current time. Otherwise the scan has reached its limit. */
  readonly isComplete: boolean;
  /** In the time of `performance.now()`. */
  readonly startedAt: number;
  /** The cluster time of the data read. */
  readonly clusterTime: string;
}

const scanLimit = 5_000;

interface ExpiredDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly application_id?: Binary;
  readonly expires_at: Date;
}

export interface CurrentTime {
  /** By the store's clock. */
  readonly now: number;
  /** The next change has a later cluster time. */
  readonly clusterTime: string;
}

/** Finds documents that expired after a moment and are not deleted yet, up to a limit per collection. */
export async function scanExpiries(
  db: Db,
  time: Time,
  from: number,
  readOptions: AggregateOptions = {},
  limit = scanLimit,
): Promise<ExpiryScan> {
  const startedAt = performance.now();
  const { expired, current } = await findExpired(db, time, from, limit, readOptions);
  const truncated = expired.filter((found) => found.length === limit);
  const isComplete = truncated.length === 0;
  // More documents may have expired in the last millisecond found.
  const completeUntil = Math.min(
    ...truncated.map((found) => (found.at(-1)?.expires_at.getTime() ?? from) - 1),
  );
  const until = isComplete ? Math.max(current.now, from) : completeUntil;
  if (!isComplete && until <= from) {
    return scanExpiries(db, time, from, readOptions, 2 * limit);
  }
  const expiries = expired
    .flat()
    .map(toExpiry)
    .filter(({ change }) => change.at <= until)
    .sort((one, other) => one.change.at - other.change.at);
  return { expiries, until, isComplete, startedAt, clusterTime: current.clusterTime };
}

export async function readCurrentTime(db: Db, time: Time): Promise<CurrentTime> {
  const { current } = await findExpired(db, time, maxDate.getTime(), 1);
  return current;
}

/**
 * One query, so that it returns the same current time that it compares with.
 * Each collection is read in the order of its index; sorting both together would
 * happen in the server's memory.
 */
async function findExpired(
  db: Db,
  time: Time,
  from: number,
  limit: number,
  readOptions: AggregateOptions = {},
) {
  const now = time();
  const expired = [
    { $match: { expires_at: { $gt: new Date(from) }, $expr: { $lte: ["$expires_at", now] } } },
    { $sort: { expires_at: 1 } },
    { $limit: limit },
    { $project: { tenant_id: 1, application_id: 1, expires_at: 1 } },
  ];
  const pipeline: Document[] = [
    ...expired,
    { $unionWith: { coll: sessionsName, pipeline: expired } },
    { $unionWith: { pipeline: [{ $documents: [{ now }] }] } },
  ];
  return callDriver(() =>
    db.client.withSession(async (session) => {
      const options = { batchSize: 2 * limit + 2, ...limitsOf({ db }, session), ...readOptions };
      const documents = db.collection(applicationsName).aggregate(pipeline, options);
      const found = await documents.toArray();
      const last = found.pop();
      if (!last || !session.operationTime) {
        throw new Error("MongoDB returned no time.");
      }
      const clusterTime = clusterTimeOf(session.operationTime);
      const current: CurrentTime = { now: last.now.getTime(), clusterTime };
      return { expired: byCollection(found as ExpiredDocument[]), current };
    }),
  );
}

function byCollection(expired: readonly ExpiredDocument[]): ExpiredDocument[][] {
  const isSession = ({ application_id }: ExpiredDocument) => application_id !== undefined;
  return [expired.filter((one) => !isSession(one)), expired.filter(isSession)];
}

function toExpiry({ _id, tenant_id, application_id, expires_at }: ExpiredDocument): TenantChange {
  const subject = subjectOf(_id, application_id);
  const change = { kind: "expired", ...subject, at: expires_at.getTime() } as const;
  return { tenantId: fromUuid(tenant_id), change };
}
