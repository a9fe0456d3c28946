import type { Options } from "minisearch";

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
}

/** The options of the index, for the build and for the page that loads it. */
export const searchOptions: Options<SearchEntry> = {
  idField: "url",
  fields: ["page", "heading", "text"],
  storeFields: ["group", "page", "heading", "excerpt"],
  searchOptions: {
    boost: { heading: 4, page: 2 },
    combineWith: "AND",
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    processTerm: (term) => term.toLowerCase(),
  },
  // The index also has the words in names such as `CreateApplication`.
  processTerm: (term) => {
    const words = term.split(/(?<=[a-z])(?=[A-Z])/).map((word) => word.toLowerCase());
    return words.length > 1 ? [term.toLowerCase(), ...words] : words;
  },
};
