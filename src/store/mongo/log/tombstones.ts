/** Removes the tombstones of deleted records. */
import type { Db } from "mongodb";
import { applicationsName, sessionsName } from "../collections.js";
import { maxDate } from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";

/** Tombstones per command. */
const batchSize = 500;

/**
 * Removes tombstones whose time has come, but only those without entries that the log may not have:
 * a TTL index could not spare these.
 */
export async function purgeTombstones(db: Db, loggedBefore: Date): Promise<void> {
  for (const name of [applicationsName, sessionsName]) {
    const documents = db.collection(name);
    const filter = {
      purge_at: { $lt: maxDate },
      "last.at": { $not: { $gte: loggedBefore } },
      $expr: { $lt: ["$purge_at", "$$NOW"] },
    };
    const options = { projection: { _id: 1 }, limit: batchSize, ...limitsOf(documents) };
    for (let count = batchSize; count === batchSize; ) {
      const found = await callDriver(() => documents.find(filter, options).toArray());
      count = found.length;
      const those = { _id: { $in: found.map(({ _id }) => _id) }, expires_at: 0 };
      await callDriver(() => documents.deleteMany(those, limitsOf(documents)));
    }
  }
}
