import type { AggregateOptions, Binary, Db, Document } from "mongodb";
import { applicationsName, sessionsName } from "../collections.js";
import { fromUuid, subjectOf } from "../documents.js";
import { callDriver, limits } from "../driver-call.js";
import { maxDate, type Time } from "../time.js";
import type { TenantChange } from "./change-events.js";
import { clusterTimeOf } from "./change-stream.js";

/** What has expired since an earlier scan. */
export interface ExpiryScan {
  /** In the order in which they expired. */
  readonly expiries: readonly TenantChange[];
  /** The moment up to which these are all. */
  readonly until: number;
  /** Whether that was the present, and not as much as one scan may hold. */
  readonly isComplete: boolean;
  /** When it was begun, as `performance.now()` tells time. */
  readonly startedAt: number;
  /** The cluster time of what it saw: whatever took effect later, it did not see. */
  readonly clusterTime: string;
}

const scanLimit = 5_000;

interface ExpiredDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly application_id?: Binary;
  readonly expires_at: Date;
}

/** The present, by the clocks that count. */
export interface CurrentTime {
  /** By the store's clock. */
  readonly now: number;
  /** The cluster time, which the next change will come after. */
  readonly clusterTime: string;
}

/** Finds what expired after a moment and is not yet swept, of each collection at most so many. */
export async function scanExpiries(
  db: Db,
  time: Time,
  from: number,
  reading: AggregateOptions = {},
  limit = scanLimit,
): Promise<ExpiryScan> {
  const startedAt = performance.now();
  const { ended, present } = await findExpired(db, time, from, limit, reading);
  const cut = ended.filter((found) => found.length === limit);
  const isComplete = cut.length === 0;
  // Of the last moment there may be more than were found.
  const full = Math.min(...cut.map((found) => (found.at(-1)?.expires_at.getTime() ?? from) - 1));
  const until = isComplete ? Math.max(present.now, from) : full;
  if (!isComplete && until <= from) {
    return scanExpiries(db, time, from, reading, 2 * limit);
  }
  const expiries = ended
    .flat()
    .map(toExpiry)
    .filter(({ change }) => change.at <= until)
    .sort((one, other) => one.change.at - other.change.at);
  return { expiries, until, isComplete, startedAt, clusterTime: present.clusterTime };
}

export async function readCurrentTime(db: Db, time: Time): Promise<CurrentTime> {
  const { present } = await findExpired(db, time, maxDate.getTime(), 1);
  return present;
}

/**
 * One read, so that the present it tells is the one that it judges by. Each
 * collection is read in the order of its index, as to sort both together would
 * be done in the server's memory.
 */
async function findExpired(
  db: Db,
  time: Time,
  from: number,
  limit: number,
  reading: AggregateOptions = {},
) {
  const now = time();
  const ended = [
    { $match: { expires_at: { $gt: new Date(from) }, $expr: { $lte: ["$expires_at", now] } } },
    { $sort: { expires_at: 1 } },
    { $limit: limit },
    { $project: { tenant_id: 1, application_id: 1, expires_at: 1 } },
  ];
  const pipeline: Document[] = [
    ...ended,
    { $unionWith: { coll: sessionsName, pipeline: ended } },
    { $unionWith: { pipeline: [{ $documents: [{ now }] }] } },
  ];
  return callDriver(() =>
    db.client.withSession(async (session) => {
      const options = { session, batchSize: 2 * limit + 2, ...limits, ...reading };
      const documents = db.collection(applicationsName).aggregate(pipeline, options);
      const found = await documents.toArray();
      const last = found.pop();
      if (!last || !session.operationTime) {
        throw new Error("MongoDB answered without the time.");
      }
      const clusterTime = clusterTimeOf(session.operationTime);
      const present: CurrentTime = { now: last.now.getTime(), clusterTime };
      return { ended: byCollection(found as ExpiredDocument[]), present };
    }),
  );
}

function byCollection(ended: readonly ExpiredDocument[]): ExpiredDocument[][] {
  const isOfSession = ({ application_id }: ExpiredDocument) => application_id !== undefined;
  return [ended.filter((one) => !isOfSession(one)), ended.filter(isOfSession)];
}

function toExpiry({ _id, tenant_id, application_id, expires_at }: ExpiredDocument): TenantChange {
  const subject = subjectOf(_id, application_id);
  const change = { kind: "expired", ...subject, at: expires_at.getTime() } as const;
  return { tenantId: fromUuid(tenant_id), change };
}
