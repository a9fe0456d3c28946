import type { Db, Document } from "mongodb";

/** On a busy machine the profiler misses some commands. */
const mostAttempts = 10;

/** Runs work and returns its commands from the server's profiler. Repeats it if the profiler missed some. */
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
