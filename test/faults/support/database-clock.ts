import { MongoClient } from "mongodb";
import { uri } from "../../support/mongo-uri.js";

/**
 * The database's clock as far as it can be known without asking it each time:
 * the earliest and the latest moment that it may have told at a time of
 * `performance.now()`, which is now where none is given.
 */
export interface DatabaseClock {
  earliest(at?: number): number;
  latest(at?: number): number;
  /** Compares the clocks again, and takes into account that one may have been set or have drifted since. */
  compare(): Promise<void>;
}

/** By how much the database's clock is ahead of `performance.now()`, at least and at most. */
interface Offset {
  readonly least: number;
  readonly most: number;
}

const attempts = 10;

/** Each answer was given between question and answer, and is cut to a millisecond: together they tell more. */
async function measure(): Promise<Offset> {
  const client = await new MongoClient(uri).connect();
  try {
    let least = Number.NEGATIVE_INFINITY;
    let most = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const sent = performance.now();
      const { localTime } = await client.db("admin").command({ hello: 1 });
      const received = performance.now();
      least = Math.max(least, localTime.getTime() - received);
      most = Math.min(most, localTime.getTime() + 1 - sent);
    }
    return { least: Math.min(least, most), most: Math.max(least, most) };
  } finally {
    await client.close();
  }
}

export async function readDatabaseClock(): Promise<DatabaseClock> {
  let { least, most } = await measure();
  return {
    earliest: (at = performance.now()) => at + least,
    latest: (at = performance.now()) => at + most,

    async compare() {
      const again = await measure();
      least = Math.min(least, again.least);
      most = Math.max(most, again.most);
    },
  };
}
