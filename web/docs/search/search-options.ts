import type MiniSearch from "minisearch";
import type { Options, Query, SearchResult } from "minisearch";
import { stopWords, synonyms } from "./words.js";

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
    boostDocument,
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

/** Finds entries, best first. The error or the operations that the query names come before the others. */
export function findEntries(index: MiniSearch<SearchEntry>, query: string): SearchResult[] {
  const path = ` ${query.trim().toLowerCase()}`;
  const name = toName(query);
  const isNamed = ({ id, endpoint, heading }: SearchResult) =>
    (id.startsWith("/docs/errors/") && toName(heading) === name) ||
    (` ${endpoint ?? ""}`.toLowerCase().endsWith(path) && path.includes("/"));
  const found = findWords(index, query);
  return [...found.filter(isNamed), ...found.filter((entry) => !isNamed(entry))];
}

const toName = (text: string) =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[-_\s]+/g, " ");

function findWords(index: MiniSearch<SearchEntry>, query: string): SearchResult[] {
  const words = withoutStopWords(query);
  const attempts: (() => SearchResult[])[] = [
    () => index.search(withSynonyms(words)),
    // The text may have a space, as in "request id".
    () => index.search(words.replaceAll(/[-_]/g, " ")),
    () => index.search(words, { processTerm: stem }),
    // Similar words, such as `internal` for `external`.
    () => index.search(words, { fuzzy }),
    // Some of the words.
    () => index.search(words, { combineWith: "OR", processTerm: stem }),
  ];
  for (const attempt of attempts) {
    const found = attempt();
    if (found.length > 0) {
      return found;
    }
  }
  return [];
}

/** A query of stop words only stays, as it may be the start of a word. */
function withoutStopWords(query: string): string {
  const words = query.split(/\s+/);
  const others = words.filter((word) => !stopWords.has(word.toLowerCase().replace(/\?$/, "")));
  return others.length > 0 ? others.join(" ") : query;
}

const synonymPattern = new RegExp(`\\b(${Object.keys(synonyms).join("|")})\\b`, "g");

/** The query, or the same with the words of the documentation. */
function withSynonyms(query: string): Query {
  const text = toName(query);
  const replaced = text.replaceAll(synonymPattern, (found) => synonyms[found] ?? found);
  return replaced === text
    ? query
    : {
        combineWith: "OR",
        queries: [query, replaced].map((words) => ({ combineWith: "AND", queries: [words] })),
      };
}

/** The start that the forms of a word share: that of "logging" is "log". */
function stem(term: string): string {
  const word = term.toLowerCase();
  const start = word.replace(/(?:ing|ed|es|e|s)$/, "").replace(/([^aeiouls])\1$/, "$1");
  return start.length > 2 ? start : word;
}

function fuzzy(term: string): number | false {
  return term.length > 4 ? 0.2 : false;
}

/** Guides and tutorials come before what only shares their words: messages, errors, the changelog. */
function boostDocument(url: string, term: string): number {
  if (/^\/docs\/(?:changelog|contributing)\b/.test(url)) {
    return 0.1;
  }
  if (url.startsWith("/docs/proto#")) {
    return 0.5;
  }
  if (url.startsWith("/docs/errors/")) {
    return isStatus(term) ? 1 : 0.15;
  }
  return /^\/docs\/(?:guides|tutorials)\//.test(url) ? 1.25 : 1;
}

/** Whether a term is an HTTP status, or the text of one. */
function isStatus(term: string): boolean {
  return /^(?:[45]\d\d|unauthorized|forbidden|conflict)$/.test(term);
}

/** Words, and names such as `external_id` and `If-Match` as a whole. */
function wordsIn(text: string): string[] {
  const words = text.match(/[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*/gu) ?? [];
  return words.map((word) => word.replaceAll("-", "_"));
}

function partsOf(word: string): string[] {
  return word.includes("_") ? word.split("_") : [];
}
