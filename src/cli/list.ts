import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Pagination } from "../../gen/latchkey/v1/application_service_pb.js";
import { countOf, formatCount, startProgressLine } from "../lib/terminal.js";
import type { Display, Output } from "./output.js";

export interface ListFlags {
  readonly limit: number;
  readonly all?: boolean;
}

interface Page<Row = unknown> {
  readonly data: Row[];
  readonly pagination?: Pagination | undefined;
}

const maxPageSize = 100;

type ReadPage<P> = (position: { readonly size: number; readonly start?: string }) => Promise<P>;

interface List<P> {
  /** All items that were read, as one page. */
  readonly page: P;
  /** The number of items on the service, if it counts them. */
  readonly total?: number | undefined;
}

/** Reads as many pages of a list as the flags request. */
export async function readPages<P extends Page>(
  { limit, all = false }: ListFlags,
  readPage: ReadPage<P>,
): Promise<List<P>> {
  const max = all ? Number.POSITIVE_INFINITY : limit;
  const first = await readPage({ size: Math.min(max, maxPageSize) });
  const isEnough = !first.pagination?.next || first.data.length >= max;
  const page = isEnough ? first : await readMore(first, max, readPage);
  // Only a first page has the total: the others are read by cursor.
  return { page, total: first.pagination?.totalItems };
}

/** Reads the pages after the first, with a progress line on a terminal. */
async function readMore<P extends Page>(first: P, max: number, readPage: ReadPage<P>): Promise<P> {
  const { data } = first;
  const line = startProgressLine({
    stream: process.stderr,
    printsWithoutTerminal: false,
    draw: () => `${formatCount(data.length)} read`,
  });
  try {
    let page = first;
    for (let next = page.pagination?.next; next && data.length < max; ) {
      page = await readPage({ size: Math.min(max - data.length, maxPageSize), start: next });
      data.push(...page.data);
      next = page.pagination?.next;
    }
    return { ...page, data };
  } finally {
    line.stop();
  }
}

interface Listing<Row> {
  /** For example `session`. */
  readonly noun: string;
  readonly format: (rows: readonly Row[], display: Display) => string;
}

/** Prints a list and, on stderr, its length. Or prints JSON. */
export function showList<Desc extends DescMessage, Row>(
  output: Output,
  schema: Desc,
  list: List<MessageShape<Desc> & Page<Row>>,
  { noun, format }: Listing<Row>,
): void {
  const { data, pagination } = list.page;
  output.show(schema, list.page, (display) => (data.length > 0 ? format(data, display) : ""));
  const isWhole = data.length > 0 && !pagination?.next;
  // Whoever reads the rows from a pipe can count them.
  if (!isWhole || output.display.width !== undefined) {
    output.note(describeLength(list, noun));
  }
}

function describeLength({ page, total }: List<Page>, noun: string): string {
  const { length } = page.data;
  if (!page.pagination?.next) {
    return length === 0 ? `No ${noun}s found.` : countOf(length, noun);
  }
  const shown = formatCount(length);
  const count =
    total === undefined ? `the first ${shown}` : `${shown} of ${formatCount(total)} ${noun}s`;
  return `Showing ${count}. Use --all to list every one.`;
}
