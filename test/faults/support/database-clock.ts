import { MongoClient } from "mongodb";
import { uri } from "../../support/mongo.js";

/** Tells what the database's clock says, without asking it each time. */
export type DatabaseClock = () => number;

const attempts = 10;

/** Compares clocks a few times: the quickest answer tells best how they differ. */
export async function readDatabaseClock(): Promise<DatabaseClock> {
  const client = await new MongoClient(uri).connect();
  let quickest = Number.POSITIVE_INFINITY;
  let distance = 0;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const sent = performance.now();
    const { localTime } = await client.db("admin").command({ hello: 1 });
    const took = performance.now() - sent;
    if (took < quickest) {
      quickest = took;
      distance = localTime.getTime() - (sent + took / 2);
    }
  }
  await client.close();
  return () => performance.now() + distance;
}
