import type MiniSearch from "minisearch";
import type { Options, SearchResult } from "minisearch";

/** A part of a page that search can find. */
export interface SearchEntry {
  readonly url: string;
  /** The group of the results, for example "Guides". */
  readonly group: string;
  /** The title of the page. */
  readonly page: string;
  /** The heading of the part. That of the first part is the title of the page. */
  readonly heading: string;
  /** The start of the text. */
  readonly excerpt: string;
  readonly text: string;
  /** The parameters and fields of an operation. */
  readonly names: string;
}

/** The options of the index, for the build and for the page that loads it. */
export const searchOptions: Options<SearchEntry> = {
  idField: "url",
  fields: ["page", "heading", "names", "text"],
  storeFields: ["group", "page", "heading", "excerpt"],
  searchOptions: {
    boost: { heading: 4, page: 2, names: 2 },
    combineWith: "AND",
    prefix: true,
    weights: { prefix: 0.4, fuzzy: 0.1 },
    // Guides and operations come before the errors and messages that share their words.
    boostDocument: (url) => (/^\/docs\/(?:proto#|errors\/)/.test(url) ? 0.5 : 1),
    tokenize: (text) => wordsIn(text),
    processTerm: (term) => term.toLowerCase(),
  },
  tokenize: (text) => wordsIn(text).flatMap((word) => [word, ...partsOf(word)]),
  // The index also has the words in names such as `CreateApplication`.
  processTerm: (term) => {
    const words = term.split(/(?<=[a-z])(?=[A-Z])/).map((word) => word.toLowerCase());
    return words.length > 1 ? [term.toLowerCase(), ...words] : words;
  },
};

/** Finds entries, best first. */
export function findEntries(index: MiniSearch<SearchEntry>, query: string): SearchResult[] {
  const exact = index.search(query);
  if (exact.length > 0) {
    return exact;
  }
  // The text may have a space, as in "request id".
  const parts = index.search(query.replaceAll(/[-_]/g, " "));
  // Similar words, such as `internal` for `external`, are the last resort.
  return parts.length > 0 ? parts : index.search(query, { fuzzy });
}

function fuzzy(term: string): number | false {
  return term.length > 4 ? 0.2 : false;
}

/** Words, and names such as `external_id` and `If-Match` as a whole. */
function wordsIn(text: string): string[] {
  const words = text.match(/[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*/gu) ?? [];
  return words.map((word) => word.replaceAll("-", "_"));
}

function partsOf(word: string): string[] {
  return word.includes("_") ? word.split("_") : [];
}
