import type { FindCursor } from "mongodb";
import { createPageBudget } from "../port/store.js";

/** Documents per response of the server, which is at most 16 MB. */
const batchSize = 32;

/** The options of a read by {@link readPage}. One document more shows whether others follow. */
export function pageOptions(size: number) {
  return { limit: size + 1, batchSize, raw: true } as const;
}

interface Page<T> {
  readonly items: T[];
  /** Whether more documents follow. */
  readonly more: boolean;
}

/** Reads up to `size` documents, fewer if they are large. */
export async function readPage<T>(
  found: Pick<FindCursor<Uint8Array>, typeof Symbol.asyncIterator>,
  size: number,
  decode: (document: Uint8Array) => T,
): Promise<Page<T>> {
  const budget = createPageBudget();
  const items: T[] = [];
  for await (const document of found) {
    if (items.length === size || !budget.tryAdd(document.length)) {
      return { items, more: true };
    }
    items.push(decode(document));
  }
  return { items, more: false };
}
