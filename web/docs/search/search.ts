import MiniSearch, { type SearchResult } from "minisearch";
import { findEntries, type SearchEntry, searchOptions } from "./search-options.js";

const maxResults = 24;
/** So that no group hides the others. */
const maxInGroup = 6;

type Result = SearchResult & Pick<SearchEntry, "group" | "page" | "heading" | "excerpt">;

/** Returns a function that finds entries, best first. */
export async function loadSearch(indexUrl: string): Promise<(query: string) => Result[]> {
  const response = await fetch(indexUrl);
  if (!response.ok) {
    throw new Error(`${indexUrl} returned ${response.status}`);
  }
  const index = MiniSearch.loadJSON<SearchEntry>(await response.text(), searchOptions);
  return (query) => limitGroups(findEntries(index, query) as Result[]).slice(0, maxResults);
}

/** Groups in the order of the best result of each. */
function limitGroups(results: readonly Result[]): Result[] {
  const groups = Map.groupBy(results, ({ group }) => group);
  return [...groups.values()].flatMap((entries) => entries.slice(0, maxInGroup));
}

/** Shows results by group. */
export function renderResults(results: readonly Result[]): HTMLElement[] {
  const groups = Map.groupBy(results, ({ group }) => group);
  let count = 0;
  return [...groups].map(([group, entries]) => {
    const title = createElement("p", "search-group", group);
    title.id = `search-group-${count}`;
    const container = createElement("div", "");
    container.role = "group";
    container.setAttribute("aria-labelledby", title.id);
    const options = entries.map((entry) => renderOption(entry, `search-option-${count++}`));
    container.append(title, ...options);
    return container;
  });
}

function renderOption({ id: url, group, page, heading, excerpt }: Result, id: string): HTMLElement {
  const option = document.createElement("a");
  option.id = id;
  option.role = "option";
  option.className = "search-option";
  option.href = url;
  option.tabIndex = -1;
  option.append(createElement("strong", "", heading));
  if (heading !== page && group !== page) {
    option.append(createElement("span", "search-page", page));
  }
  option.append(createElement("span", "search-excerpt", excerpt));
  return option;
}

function createElement(name: string, className: string, text = ""): HTMLElement {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}
