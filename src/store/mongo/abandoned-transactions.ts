import { type MongoClient, ReadConcern } from "mongodb";
import { limits } from "./reach.js";

/** What every client of ours calls itself to the server, whatever appName its URI gives it. */
export const clientName = "latchkey";

/** A transaction of ours that has idled for so long has nobody who goes on with it, in milliseconds. */
const longestIdling = 2_000;

/** The shortest time between two looks, in milliseconds. */
const lookInterval = 500;

/** Ends the transactions that nobody goes on with, if there are any. It never fails. */
export type EndAbandoned = () => Promise<void>;

/**
 * An instance that is killed, or cut off, in the midst of a transaction leaves
 * what it has written locked: the server ends such a transaction only when it
 * is a minute old or more, and until then nobody could revoke that key. So
 * whoever meets it looks for it. To find and to end the sessions of one's own
 * user takes no privilege. Where its owner is alive after all it is told that
 * the transaction is no more, and runs it anew.
 */
export function createAbandonedEnder(client: MongoClient): EndAbandoned {
  const admin = client.db("admin", {
    readConcern: new ReadConcern("local"),
    readPreference: "primary",
  });
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function look(): Promise<void> {
    const sessions = await admin.aggregate(abandoned, limits).toArray();
    if (sessions.length > 0) {
      await admin.command({ killSessions: sessions, ...limits });
    }
  }

  return async () => {
    if (!looking && performance.now() > lookedAt + lookInterval) {
      lookedAt = performance.now();
      looking = look()
        .catch(() => {})
        .finally(() => {
          looking = undefined;
        });
    }
    await looking;
  };
}

const abandoned = [
  { $currentOp: { allUsers: false, idleSessions: true } },
  {
    $match: {
      type: "idleSession",
      "clientMetadata.driver.name": { $regex: `\\|${clientName}$` },
      "transaction.timeInactiveMicros": { $gt: longestIdling * 1_000 },
    },
  },
  { $replaceWith: { id: "$lsid.id" } },
];
