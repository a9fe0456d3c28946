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
  /** The endpoint, parameters and fields of an operation, or the status and title of an error. */
  readonly names: string;
  /** The method and path of an operation. */
  readonly endpoint?: string | undefined;
}

/** The options of the index, for the build and for the page that loads it. */
export const searchOptions: Options<SearchEntry> = {
  idField: "url",
  fields: ["page", "heading", "names", "text"],
  storeFields: ["group", "page", "heading", "excerpt", "endpoint"],
  searchOptions: {
    boost: { heading: 4, page: 2, names: 2 },
    combineWith: "AND",
    prefix: true,
    weights: { prefix: 0.4, fuzzy: 0.1 },
    // Guides and operations come before the errors and messages that share their words.
    boostDocument: (url, term) =>
      /^\/docs\/(?:proto#|errors\/)/.test(url) && !isStatus(term) ? 0.5 : 1,
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

/** Finds entries, best first. Operations with the path in the query come before the others. */
export function findEntries(index: MiniSearch<SearchEntry>, query: string): SearchResult[] {
  const path = ` ${query.trim().toLowerCase()}`;
  const hasPath = ({ endpoint }: SearchResult) =>
    ` ${endpoint ?? ""}`.toLowerCase().endsWith(path) && path.includes("/");
  const found = findWords(index, query);
  return [...found.filter(hasPath), ...found.filter((entry) => !hasPath(entry))];
}

function findWords(index: MiniSearch<SearchEntry>, query: string): SearchResult[] {
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

function isStatus(term: string): boolean {
  return /^[45]\d\d$/.test(term);
}

/** Words, and names such as `external_id` and `If-Match` as a whole. */
function wordsIn(text: string): string[] {
  const words = text.match(/[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*/gu) ?? [];
  return words.map((word) => word.replaceAll("-", "_"));
}

function partsOf(word: string): string[] {
  return word.includes("_") ? word.split("_") : [];
}
