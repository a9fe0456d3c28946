import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
  ListApplicationsRequestSchema,
  type Pagination,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { maximumOf } from "../contract/fields.js";
import { countOf, formatCount, startProgressLine } from "../lib/terminal.js";
import { exitCodes } from "./errors.js";
import type { Display, Output } from "./output.js";

export interface ListFlags {
  readonly limit: number;
  readonly all?: boolean;
}

interface Page<Row = unknown> {
  readonly data: Row[];
  readonly pagination?: Pagination | undefined;
}

/** The most items that one call returns. */
export const maxPageSize = maximumOf(ListApplicationsRequestSchema.field.size);

type ReadPage<P> = (position: { readonly size: number; readonly start?: string }) => Promise<P>;

/** Reads as many pages of a list as the flags request, and returns all items as one page. */
export async function readPages<P extends Page>(
  { limit, all = false }: ListFlags,
  readPage: ReadPage<P>,
): Promise<P> {
  const max = all ? Number.POSITIVE_INFINITY : limit;
  const first = await readPage({ size: Math.min(max, maxPageSize) });
  const isEnough = !first.pagination?.next || first.data.length >= max;
  return isEnough ? first : readMore(first, max, readPage);
}

/**
 * Reads the pages after the first, with a progress line on a terminal. Ctrl-C stops, and what was
 * read until then is printed.
 */
async function readMore<P extends Page>(first: P, max: number, readPage: ReadPage<P>): Promise<P> {
  const { data } = first;
  const line = startProgressLine({
    stream: process.stderr,
    printsWithoutTerminal: false,
    draw: () => `${formatCount(data.length)} read`,
  });
  let stop = () => {};
  const interrupted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
  });
  process.once("SIGINT", stop);
  try {
    let { pagination } = first;
    while (pagination?.next && data.length < max) {
      const size = Math.min(max - data.length, maxPageSize);
      const reading = readPage({ size, start: pagination.next });
      const page = await Promise.race([reading, interrupted]);
      if (!page) {
        process.exitCode = exitCodes.interrupted.code;
        break;
      }
      data.push(...page.data);
      pagination = page.pagination;
    }
    // Only a first page has the total: the others are read by cursor.
    const { totalItems, totalPages, pageSize } = first.pagination ?? {};
    return { ...first, pagination: { ...pagination, totalItems, totalPages, pageSize } };
  } finally {
    process.off("SIGINT", stop);
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
  list: MessageShape<Desc> & Page<Row>,
  { noun, format }: Listing<Row>,
): void {
  const { data, pagination } = list;
  output.show(schema, list, (display) => (data.length > 0 ? format(data, display) : ""));
  const isWhole = data.length > 0 && !pagination?.next;
  // Whoever reads the rows from a pipe can count them.
  if (!isWhole || output.display.width !== undefined) {
    output.note(describeLength(list, noun));
  }
}

function describeLength({ data: { length }, pagination }: Page, noun: string): string {
  if (!pagination?.next) {
    return length === 0 ? `No ${noun}s found.` : countOf(length, noun);
  }
  const { totalItems: total } = pagination;
  const shown = formatCount(length);
  const count =
    total === undefined ? `the first ${shown}` : `${shown} of ${formatCount(total)} ${noun}s`;
  return process.exitCode === exitCodes.interrupted.code
    ? `Stopped. Showing ${count}.`
    : `Showing ${count}. Use --all to list every one.`;
}
