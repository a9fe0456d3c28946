import type { ClientSession, Collection, Document, Filter, WithId } from "mongodb";
import { present } from "./documents.js";
import { limitsIn, reach } from "./reach.js";

/**
 * Inserts a document of which some fields are expressions, such as the
 * database's time, and answers it. An insert takes no expressions; an upsert
 * does. Its filter finds no document of ours, so one that is there already
 * makes a duplicate key, and is never overwritten.
 */
export async function insert<D extends Document>(
  collection: Collection<D>,
  fields: Document & { readonly _id: unknown },
  computed: Document,
  session: ClientSession | undefined,
): Promise<WithId<D>> {
  const document = { $mergeObjects: [{ $literal: present(fields) }, computed] };
  const inserted = await reach(() =>
    collection.findOneAndUpdate(
      { _id: fields._id, created_at: { $exists: false } } as unknown as Filter<D>,
      [{ $replaceWith: document }],
      { upsert: true, returnDocument: "after", ...limitsIn(session) },
    ),
  );
  if (!inserted) {
    throw new Error("MongoDB answered an upsert without its document.");
  }
  return inserted;
}
