import type { Db } from "mongodb";
import { until } from "./until.js";

/** Resolves when `count` change streams are open on a database. */
export function hasStreams(db: Db, count: number): Promise<void> {
  return until(async () => (await streamsOn(db)).length === count);
}

function streamsOn(db: Db) {
  const match = { ns: { $regex: `^${db.databaseName}\\.` }, "cursor.tailable": true };
  const operations = { $currentOp: { allUsers: true, idleCursors: true } };
  return db.client
    .db("admin")
    .aggregate([operations, { $match: match }])
    .toArray();
}
