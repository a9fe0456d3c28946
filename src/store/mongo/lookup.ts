import type { Binary, Collection, Document, Filter } from "mongodb";
import { isId } from "../../ids.js";
import { createBatcher } from "../batch.js";
import { createDecoder } from "./decoder.js";
import { uuid } from "./documents.js";
import type { FreshRead } from "./fresh-reads.js";
import { limits, reach } from "./reach.js";
import { alive, type Time } from "./time.js";

/**
 * Reads what is alive by id, many at a time: the way of every authentication.
 * Whoever is let in by it sees, in whatever it reads later from the same
 * primary, at least what the look-up could see.
 */
export function createLookup<
  D extends Document & { readonly _id: Binary },
  R extends { id: string },
>(
  collection: Collection<D>,
  time: Time,
  freshRead: FreshRead,
  toRecord: (document: D) => R,
): (id: string) => Promise<R | undefined> {
  const decode = createDecoder(toRecord);
  const lookup = createBatcher(async (ids: readonly string[]) => {
    const filter = { _id: { $in: ids.map(uuid) }, ...alive(time) } as unknown as Filter<D>;
    // One more than there can be, so that all come in one answer.
    const options = { batchSize: ids.length + 1, raw: true, ...limits, ...freshRead() };
    const documents = await reach(() => collection.find<Uint8Array>(filter, options).toArray());
    const records = documents.map(decode);
    return new Map(records.map((record) => [record.id, record]));
  });
  return async (id) => (isId(id) ? lookup(id) : undefined);
}
