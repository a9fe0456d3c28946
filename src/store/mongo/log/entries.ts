/** The change stream of the log: the entries that documents carry, and the marks of instances that wait for them. */
import type { Binary, Db, ResumeToken } from "mongodb";
import type { CollectionSpec } from "../collections.js";
import { applicationsName, sessionsName } from "../collections.js";
import type { LogEntry } from "../documents.js";
import { type EventStream, openEventStream } from "../feeds/change-stream.js";

/** A write that the log must have before the next one. */
export interface LoggedWrite {
  readonly _id: ResumeToken;
  readonly operationType: string;
  /** The entries of a document, oldest first. Some may be in the log already. */
  readonly last?: readonly LogEntry[];
  readonly mark?: Mark;
}

/** An instance waits until the log has all entries before its mark. */
export interface Mark {
  readonly _id: Binary;
  /** Grows with each wait. */
  readonly n: number;
}

export interface MarkDocument extends Mark {
  /** The mark that the log has passed. */
  readonly passed?: number;
  readonly expires_at: Date;
}

export const marksName = "log_marks";

export const markCollection: CollectionSpec = {
  name: marksName,
  indexes: [{ key: { expires_at: 1 }, options: { expireAfterSeconds: 0 } }],
  schema: {
    bsonType: "object",
    required: ["_id", "n", "expires_at"],
    properties: {
      _id: { bsonType: "binData" },
      n: { bsonType: "number" },
      passed: { bsonType: "number" },
      expires_at: { bsonType: "date" },
    },
  },
};

const exists = { $exists: true };

/**
 * Reads the entries from the writes themselves: no document has to be read again. Every write
 * that sets `last` replaces it as a whole, because the stream would return a part of it otherwise.
 */
export function openLoggedWrites(db: Db, start: string): EventStream<LoggedWrite> {
  const records = { "ns.coll": { $in: [applicationsName, sessionsName] } };
  const marks = { "ns.coll": marksName };
  const fields = {
    operationType: 1,
    last: { $ifNull: ["$updateDescription.updatedFields.last", "$fullDocument.last"] },
    mark: {
      $cond: [
        { $eq: ["$ns.coll", marksName] },
        {
          _id: "$documentKey._id",
          n: { $ifNull: ["$updateDescription.updatedFields.n", "$fullDocument.n"] },
        },
        "$$REMOVE",
      ],
    },
  };
  const stages = [
    {
      $match: {
        $or: [
          { ...records, "updateDescription.updatedFields.last": exists },
          { ...records, "fullDocument.last": exists },
          { ...marks, "updateDescription.updatedFields.n": exists },
          { ...marks, "fullDocument.n": exists },
          { operationType: "invalidate" },
        ],
      },
    },
    { $project: fields },
  ];
  return openEventStream(db, stages, start);
}
