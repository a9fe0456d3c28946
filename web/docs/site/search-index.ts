import MiniSearch from "minisearch";
import type { SearchEntry } from "../search/search-options.js";
import { searchOptions } from "../search/search-options.js";
import type { Page } from "./layout.js";

const excerptLength = 110;

/** Creates the index of all parts of all pages, as JSON. */
export function createSearchIndex(pages: readonly Page[]): string {
  const index = new MiniSearch(searchOptions);
  index.addAll(pages.flatMap(entriesOf));
  return JSON.stringify(index);
}

function entriesOf({ url, title, group, sections = [] }: Page): SearchEntry[] {
  return group === undefined
    ? []
    : sections.map(({ heading, text, endpoint, names = [] }) => ({
        url: heading.level === 1 ? url : `${url}#${heading.id}`,
        group,
        page: title,
        heading: heading.level === 1 ? title : heading.text,
        excerpt: text.slice(0, excerptLength),
        text,
        endpoint,
        names: [endpoint, ...names].join(" "),
      }));
}
