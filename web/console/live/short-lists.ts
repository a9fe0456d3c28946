import type { InfiniteData } from "@tanstack/react-query";

/** A list of more pages is not asked for again as a whole, which takes a call for each of them. */
const mostPages = 5;

/** Whether what was asked for may be asked for again by itself. */
export function isShort({ state: { data } }: { readonly state: { readonly data?: unknown } }) {
  const { pages = [] } = (data ?? {}) as Partial<InfiniteData<unknown>>;
  return pages.length <= mostPages;
}
