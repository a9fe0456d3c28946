/** How far the audit log has got, and which instance fills it: one document, shared by all instances. */
import { randomUUID } from "node:crypto";
import { type Binary, type Collection, type Db, type Document, Timestamp } from "mongodb";
import type { CollectionSpec } from "../collections.js";
import { uuid } from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";

export interface LogPosition {
  /** The log has the entries of all changes before this cluster time. */
  readonly complete: Timestamp;
  readonly complete_at: Date;
}

interface PositionDocument extends LogPosition {
  readonly _id: "log";
  readonly leader: Binary;
  readonly lease_until: Date;
}

export const logPositionName = "log_position";

export const logPositionCollection: CollectionSpec = {
  name: logPositionName,
  indexes: [],
  schema: {
    bsonType: "object",
    required: ["_id", "leader", "lease_until", "complete", "complete_at"],
    properties: {
      _id: { enum: ["log"] },
      leader: { bsonType: "binData" },
      lease_until: { bsonType: "date" },
      complete: { bsonType: "timestamp" },
      complete_at: { bsonType: "date" },
    },
  },
};

const _id = "log";

/** Milliseconds after which another instance takes over. */
const leaseTime = 3_000;

/** Starts the log of a new database. Must be called before its first change. */
export async function createPosition(db: Db): Promise<void> {
  await insertPosition(db.collection(logPositionName), await readOperationTime(db));
}

async function insertPosition(
  documents: Collection<PositionDocument>,
  complete: Timestamp,
): Promise<void> {
  const leader = uuid(randomUUID());
  const position = { leader, lease_until: new Date(0), ...positionAt(complete) };
  const options = { upsert: true, ...limitsOf(documents) };
  await callDriver(() => documents.updateOne({ _id }, { $setOnInsert: position }, options));
}

/** Before all changes. */
const start = new Timestamp({ t: 1, i: 0 });

export function positionAt(complete: Timestamp): LogPosition {
  return { complete, complete_at: new Date(complete.t * 1_000) };
}

/** The cluster time of the latest write. */
export async function readOperationTime(db: Db): Promise<Timestamp> {
  const { operationTime } = await db.command({ hello: 1, ...limitsOf({ db }) });
  if (!(operationTime instanceof Timestamp)) {
    throw new Error("MongoDB returned no operation time.");
  }
  return operationTime;
}

export interface PositionRead extends LogPosition {
  /** Whether no instance fills the log. */
  readonly isFree: boolean;
  /** Milliseconds that the log is behind. */
  readonly lag: number;
}

export interface Lease {
  read(): Promise<PositionRead>;
  /** Takes the lease if it is free, and returns the position to continue from. */
  take(): Promise<PositionRead | undefined>;
  /** Records a position and keeps the lease. Returns nothing if another instance has taken it. */
  renew(position: LogPosition | undefined): Promise<PositionRead | undefined>;
  release(): Promise<void>;
}

/** The lease of an instance. Two leaders at once do no harm, because each entry has an id. */
export function createLease(documents: Collection<PositionDocument>): Lease {
  const me = uuid(randomUUID());
  // Always the database's own clock: instances must agree.
  const until = { $add: ["$$NOW", leaseTime] };

  const projection = {
    complete: 1,
    complete_at: 1,
    isFree: { $lt: ["$lease_until", "$$NOW"] },
    lag: { $subtract: ["$$NOW", "$complete_at"] },
  };

  async function update(filter: Document, fields: Document): Promise<PositionRead | undefined> {
    const options = { returnDocument: "after", projection, ...limitsOf(documents) } as const;
    const updated = await callDriver(() =>
      documents.findOneAndUpdate({ _id, ...filter }, [{ $set: fields }], options),
    );
    return (updated as PositionRead | null) ?? undefined;
  }

  return {
    async read() {
      const options = { projection, ...limitsOf(documents) };
      const found = await callDriver(() => documents.findOne<PositionRead>({ _id }, options));
      if (!found) {
        // It was lost: the log may lack any change.
        await insertPosition(documents, start);
        throw new Error("The position of the log was missing.");
      }
      return found;
    },

    async take() {
      const isFree = { $expr: { $lt: ["$lease_until", "$$NOW"] } };
      return update(isFree, { leader: me, lease_until: until });
    },

    async renew(position) {
      const reached = position && {
        complete: { $max: ["$complete", position.complete] },
        complete_at: { $max: ["$complete_at", position.complete_at] },
      };
      return update({ leader: me }, { lease_until: until, ...reached });
    },

    async release() {
      await update({ leader: me }, { lease_until: "$$NOW" });
    },
  };
}
