import type { Pagination } from "../../gen/latchkey/v1/application_service_pb.js";
import { startLiveLine } from "../live-line.js";

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

type ReadPage<P> = (place: { readonly size: number; readonly start?: string }) => Promise<P>;

/** Walks a list by cursor until there are enough items, and answers them as one page. */
export async function readPages<P extends Page>(
  { limit, all = false }: ListFlags,
  readPage: ReadPage<P>,
): Promise<P> {
  const most = all ? Number.POSITIVE_INFINITY : limit;
  const first = await readPage({ size: Math.min(most, largestPage) });
  const isEnough = !first.pagination?.next || first.data.length >= most;
  return isEnough ? first : readOn(first, most, readPage);
}

/** Reads the pages after the first, and shows whoever watches how many items there are so far. */
async function readOn<P extends Page>(first: P, most: number, readPage: ReadPage<P>): Promise<P> {
  const { data } = first;
  const line = startLiveLine({
    stream: process.stderr,
    tellsUnwatched: false,
    draw: () => `${data.length.toLocaleString("en-US")} read`,
  });
  try {
    let page = first;
    for (let next = page.pagination?.next; next && data.length < most; ) {
      page = await readPage({ size: Math.min(most - data.length, largestPage), start: next });
      data.push(...page.data);
      next = page.pagination?.next;
    }
    return { ...page, data };
  } finally {
    line.stop();
  }
}

/** Tells that there is more than is shown. */
export function moreNote({ pagination, data }: Page): string | undefined {
  return pagination?.next ? `Shown are ${data.length}: --all shows all of them.` : undefined;
}
