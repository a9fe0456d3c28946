import type { Db, Document } from "mongodb";

/** The commands on our collections that work gives rise to, as the server's profiler saw them. */
export async function profile(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.setProfilingLevel("all");
  await work();
  await db.setProfilingLevel("off");
  const ns = { $in: [`${db.databaseName}.applications`, `${db.databaseName}.sessions`] };
  const seen = await db.collection("system.profile").find({ ns }).toArray();
  await db.collection("system.profile").drop();
  return seen;
}
