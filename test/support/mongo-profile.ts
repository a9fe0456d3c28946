import type { Db, Document } from "mongodb";

/** On a busy machine the profiler misses commands now and then. */
const mostAttempts = 10;

/**
 * The commands on our collections that work gives rise to, as the server's
 * profiler saw them. Works again where it saw fewer than there should be.
 */
export async function profile(
  db: Db,
  work: () => Promise<unknown>,
  atLeast = 1,
): Promise<Document[]> {
  for (let attempt = 1; ; attempt++) {
    const seen = await profileOnce(db, work);
    if (seen.length >= atLeast || attempt === mostAttempts) {
      return seen;
    }
  }
}

async function profileOnce(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.setProfilingLevel("all");
  await work();
  await db.setProfilingLevel("off");
  const names = ["applications", "sessions", "events", "answers", "marks"];
  const ns = { $in: names.map((name) => `${db.databaseName}.${name}`) };
  const seen = await db.collection("system.profile").find({ ns }).toArray();
  await db.collection("system.profile").drop();
  return seen;
}
