import type { Db, Document } from "mongodb";

/** The commands on our collections that work gives rise to, as the server's profiler saw them. */
export async function profile(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.setProfilingLevel("all");
  await work();
  await db.setProfilingLevel("off");
  const names = ["applications", "sessions", "events", "answers", "marks"];
  const ns = { $in: names.map((name) => `${db.databaseName}.${name}`) };
  const seen = await db.collection("system.profile").find({ ns }).toArray();
  await db.collection("system.profile").drop();
  return seen;
}
