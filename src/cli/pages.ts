import type { Pagination } from "../../gen/latchkey/v1/application_service_pb.js";

/** How much of a list to show. */
export interface ListFlags {
  readonly limit: number;
  readonly all?: boolean;
}

interface Page {
  readonly data: unknown[];
  readonly pagination?: Pagination | undefined;
}

const largestPage = 100;

/** Walks a list by cursor until there are enough items, and answers them as one page. */
export async function readPages<P extends Page>(
  { limit, all = false }: ListFlags,
  readPage: (place: { readonly size: number; readonly start?: string }) => Promise<P>,
): Promise<P> {
  const most = all ? Number.POSITIVE_INFINITY : limit;
  let page = await readPage({ size: Math.min(most, largestPage) });
  const { data } = page;
  for (let next = page.pagination?.next; next && data.length < most; ) {
    page = await readPage({ size: Math.min(most - data.length, largestPage), start: next });
    data.push(...page.data);
    next = page.pagination?.next;
  }
  return { ...page, data };
}

/** Tells that there is more than is shown. */
export function moreNote({ pagination, data }: Page): string | undefined {
  return pagination?.next ? `Shown are ${data.length}: --all shows all of them.` : undefined;
}
