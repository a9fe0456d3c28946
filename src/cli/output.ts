import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Pagination } from "../../gen/latchkey/v1/application_service_pb.js";
import { escapeUnprintable, startProgressLine } from "../lib/terminal.js";
import { createEncoder } from "../transport/rest/encode.js";
import { readClientEnvironment } from "./environment.js";
import { createColors, type Display } from "./format.js";

export interface OutputFlags {
  readonly json?: boolean;
}

/** Prints the result of a command: text for people, or JSON. */
export interface Output {
  readonly isJson: boolean;
  readonly display: Display;
  /** Prints a message. Its JSON is the same as over REST. */
  show<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (display: Display) => string,
  ): void;
  /** Prints one message of a stream. Its JSON is always on one line. */
  showLine<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (display: Display) => string,
  ): void;
  /** Prints a value that is not a message of the API. */
  showValue(value: unknown, text: (display: Display) => string): void;
  /** Prints a note on stderr, unless the output is JSON. */
  note(text: string | undefined): void;
  /** Prints a warning on stderr. */
  warn(text: string): void;
}

export function createOutput({ json: isJson = false }: OutputFlags): Output {
  const { stdout, stderr } = process;
  exitOnClosedPipe();
  const environment = readClientEnvironment();
  const display = {
    colors: createColors(stdout, environment),
    width: stdout.isTTY ? stdout.columns || 80 : undefined,
  };
  return {
    isJson,
    display,
    show(schema, message, text) {
      stdout.write(isJson ? formatJson(createEncoder(schema)(message).toString()) : text(display));
    },
    showLine(schema, message, text) {
      stdout.write(isJson ? jsonLine(createEncoder(schema)(message).toString()) : text(display));
    },
    showValue(value, text) {
      stdout.write(isJson ? formatJson(JSON.stringify(value)) : text(display));
    },
    note(text) {
      if (text !== undefined && !isJson) {
        stderr.write(`${createColors(stderr, environment).dim(escapeUnprintable(text))}\n`);
      }
    },
    warn(text) {
      stderr.write(`${createColors(stderr, environment).warn(escapeUnprintable(text))}\n`);
    },
  };
}

/** JSON for people on a terminal, on one line for programs. */
function formatJson(json: string): string {
  return process.stdout.isTTY
    ? `${escapeInvisible(JSON.stringify(JSON.parse(json), null, 2))}\n`
    : jsonLine(json);
}

function jsonLine(json: string): string {
  return `${process.stdout.isTTY ? escapeInvisible(json) : json}\n`;
}

/** Escapes the control and format characters that JSON leaves as they are: a terminal would obey them. */
function escapeInvisible(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

let handlesClosedPipe = false;

/** A reader such as `head` may close the pipe early: that is not an error. */
function exitOnClosedPipe(): void {
  if (!handlesClosedPipe) {
    handlesClosedPipe = true;
    process.stdout.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") {
        throw error;
      }
      process.exit();
    });
  }
}

export interface ListFlags {
  readonly limit: number;
  readonly all?: boolean;
}

interface Page {
  readonly data: unknown[];
  readonly pagination?: Pagination | undefined;
}

const maxPageSize = 100;

type ReadPage<P> = (position: { readonly size: number; readonly start?: string }) => Promise<P>;

interface List<P> {
  /** All items that were read, as one page. */
  readonly page: P;
  /** The number of items on the service, if it counts them. */
  readonly total: number | undefined;
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

/** The note below a list that is not complete. */
export function truncationNote({ page, total }: List<Page>): string | undefined {
  if (!page.pagination?.next) {
    return undefined;
  }
  const shown = formatCount(page.data.length);
  const count = total === undefined ? `the first ${shown}` : `${shown} of ${formatCount(total)}`;
  return `Showing ${count}. Use --all to list every one.`;
}

function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}
