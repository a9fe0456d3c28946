import type { ClientSession, Collection, Document, Filter, WithId } from "mongodb";
import type { Clock } from "../port/store.js";
import { omitUndefined } from "./documents.js";
import { callDriver, limitsIn } from "./driver-call.js";

/** The current time as a value in MongoDB expressions. */
export type Time = () => Date | "$$NOW";

/** The clock of the database: the same for all instances. */
export const databaseTime: Time = () => "$$NOW";

export const timeFromClock =
  (clock: Clock): Time =>
  () =>
    new Date(clock());

/** The latest time that a date can represent. */
export const maxDate = new Date(8.64e15);

/** Matches unexpired documents. TTL indexes delete too late to rely on them. */
export const notExpired = (time: Time): Document => ({
  $expr: { $gt: [{ $ifNull: ["$expires_at", maxDate] }, time()] },
});

/** Matches unexpired documents with the TTL index: fast even if most documents have expired. */
export const notExpiredByIndex = (time: Time): Document => ({
  $or: [
    { expires_at: null },
    { expires_at: { $type: "date" }, $expr: { $gt: ["$expires_at", time()] } },
  ],
});

/** Matches expired documents that MongoDB has not deleted yet, with the TTL index. */
export const expiredByIndex = (time: Time): Document => ({
  expires_at: { $type: "date" },
  $expr: { $lte: ["$expires_at", time()] },
});

/**
 * Inserts a document with computed fields, such as the database's time, and
 * returns it. An insert accepts no expressions, but an upsert does. The filter
 * matches no stored document, so an existing id fails as a duplicate key.
 */
export async function insert<D extends Document>(
  collection: Collection<D>,
  fields: Document & { readonly _id: unknown },
  computed: Document,
  session: ClientSession | undefined,
): Promise<WithId<D>> {
  const document = { $mergeObjects: [{ $literal: omitUndefined(fields) }, computed] };
  const inserted = await callDriver(() =>
    collection.findOneAndUpdate(
      { _id: fields._id, created_at: { $exists: false } } as unknown as Filter<D>,
      [{ $replaceWith: document }],
      { upsert: true, returnDocument: "after", ...limitsIn(session) },
    ),
  );
  if (!inserted) {
    throw new Error("MongoDB returned no document for an upsert.");
  }
  return inserted;
}
