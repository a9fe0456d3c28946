/** Scans for applications and sessions that have expired: an expiry writes nothing that a stream could report. */
import type { AggregateOptions, Binary, Db, Document } from "mongodb";
import { type Change, changeRetention } from "../../port/changes.js";
import { applicationsName, sessionsName } from "../collections.js";
import { fromUuid, maxDate, type Time, uuid } from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";
import { clusterTimeOf } from "./change-stream.js";

interface TenantExpiry {
  readonly tenantId: string;
  readonly change: Change;
}

/** The expirations since an earlier scan. */
export interface ExpiryScan {
  /** In order of expiry. */
  readonly expiries: readonly TenantExpiry[];
  /** Whether earlier expirations may be missing, because MongoDB may have deleted their documents. */
  readonly isGap: boolean;
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

interface ScanOptions {
  /** Default: all tenants. */
  readonly tenantId?: string | undefined;
  /** Per collection. */
  readonly limit?: number | undefined;
  readonly read?: AggregateOptions | undefined;
}

/** Finds documents that expired after a moment and are not deleted yet. */
export async function scanExpiries(
  db: Db,
  time: Time,
  from: number,
  options: ScanOptions = {},
): Promise<ExpiryScan> {
  const { limit = scanLimit } = options;
  const startedAt = performance.now();
  const { expired, current } = await findExpired(db, time, from, { ...options, limit });
  const truncated = expired.filter((found) => found.length === limit);
  const isComplete = truncated.length === 0;
  // More documents may have expired in the last millisecond found.
  const completeUntil = Math.min(
    ...truncated.map((found) => (found.at(-1)?.expires_at.getTime() ?? from) - 1),
  );
  const until = isComplete ? Math.max(current.now, from) : completeUntil;
  if (!isComplete && until <= from) {
    return scanExpiries(db, time, from, { ...options, limit: 2 * limit });
  }
  const expiries = expired
    .flat()
    .map(toExpiry)
    .filter(({ change }) => change.at <= until)
    .sort((one, other) => one.change.at - other.change.at);
  const isGap = current.now - from > changeRetention;
  return { expiries, isGap, until, isComplete, startedAt, clusterTime: current.clusterTime };
}

export async function readCurrentTime(db: Db, time: Time): Promise<CurrentTime> {
  const { current } = await findExpired(db, time, maxDate.getTime(), { limit: 1 });
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
  { tenantId, limit, read }: ScanOptions & { readonly limit: number },
) {
  const now = time();
  const expired = [
    {
      $match: {
        expires_at: { $gt: new Date(from) },
        ...(tenantId !== undefined && { tenant_id: uuid(tenantId) }),
        $expr: { $lte: ["$expires_at", now] },
      },
    },
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
      const options = { batchSize: 2 * limit + 2, ...limitsOf({ db }, session), ...read };
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

/** Only documents of sessions have an application id. */
function toExpiry({ _id, tenant_id, application_id, expires_at }: ExpiredDocument): TenantExpiry {
  const subject = application_id
    ? { applicationId: fromUuid(application_id), sessionId: fromUuid(_id) }
    : { applicationId: fromUuid(_id) };
  const change = { kind: "expired", ...subject, at: expires_at.getTime() } as const;
  return { tenantId: fromUuid(tenant_id), change };
}

/** A buffer of recent expirations of all tenants, shared by all followers. */
export interface RecentExpiries {
  /** Expirations up to this moment were found. */
  readonly scannedTo: number;

  push(scan: ExpiryScan): void;
  /** Returns the expirations of a tenant after a moment, or `undefined` if some have left the buffer. */
  read(after: number, tenantId: string): Change[] | undefined;
}

const recentCapacity = 10_000;

export function createRecentExpiries(start: number, capacity = recentCapacity): RecentExpiries {
  let recent: TenantExpiry[] = [];
  let scannedTo = start;
  let floor = start;

  return {
    get scannedTo() {
      return scannedTo;
    },

    push({ expiries, until, isGap }) {
      scannedTo = until;
      if (isGap) {
        recent = [];
        floor = until;
      } else if (expiries.length > 0) {
        const all = [...recent, ...expiries];
        recent = all.slice(-capacity);
        floor = all.at(-capacity - 1)?.change.at ?? floor;
      }
    },

    read(after, tenantId) {
      if (after < floor) {
        return undefined;
      }
      const first = recent.findLastIndex(({ change }) => change.at <= after) + 1;
      const found = recent.slice(first).filter((expiry) => expiry.tenantId === tenantId);
      return found.map(({ change }) => change);
    },
  };
}
