import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Pagination } from "../../gen/latchkey/v1/application_service_pb.js";
import { visible } from "../lib/printable.js";
import { startLiveLine } from "../lib/progress-line.js";
import { createEncoder } from "../transport/rest/encode.js";
import { readClientEnvironment } from "./environment.js";
import { createColours, type Look } from "./table.js";

export interface OutputFlags {
  readonly json?: boolean;
}

/** Where a command shows what came of it. */
export interface Output {
  readonly isJson: boolean;
  readonly look: Look;
  /** Shows a message: as JSON, the same as over REST, or as a text for people. */
  show<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (look: Look) => string,
  ): void;
  /** Shows one message of many, as one line of JSON wherever it is shown. */
  showLine<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (look: Look) => string,
  ): void;
  /** Shows something that is no message of the contract. */
  showValue(value: unknown, text: (look: Look) => string): void;
  /** Shows what is beside the matter, where there is something, to people alone. */
  note(text: string | undefined): void;
  /** Shows what somebody should know whatever reads the rest. */
  warn(text: string): void;
}

export function createOutput({ json: isJson = false }: OutputFlags): Output {
  const { stdout, stderr } = process;
  endQuietlyWithReader();
  const environment = readClientEnvironment();
  const look = {
    colours: createColours(stdout, environment),
    width: stdout.isTTY ? stdout.columns || 80 : undefined,
  };
  return {
    isJson,
    look,
    show(schema, message, text) {
      stdout.write(isJson ? jsonLine(createEncoder(schema)(message).toString()) : text(look));
    },
    showLine(schema, message, text) {
      stdout.write(isJson ? oneLine(createEncoder(schema)(message).toString()) : text(look));
    },
    showValue(value, text) {
      stdout.write(isJson ? jsonLine(JSON.stringify(value)) : text(look));
    },
    note(text) {
      if (text !== undefined && !isJson) {
        stderr.write(`${createColours(stderr, environment).faint(visible(text))}\n`);
      }
    },
    warn(text) {
      stderr.write(`${createColours(stderr, environment).warn(visible(text))}\n`);
    },
  };
}

/** One line, or more where a person reads it: who pipes it reads lines. */
function jsonLine(json: string): string {
  return process.stdout.isTTY
    ? `${escapeUnseen(JSON.stringify(JSON.parse(json), null, 2))}\n`
    : oneLine(json);
}

/** One line wherever it is read. */
function oneLine(json: string): string {
  return `${process.stdout.isTTY ? escapeUnseen(json) : json}\n`;
}

/** JSON escapes some of what a terminal would obey by itself, and may escape all of it. */
function escapeUnseen(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

let isWatched = false;

/** Whoever reads what we write may have had enough, as `head` has. */
function endQuietlyWithReader(): void {
  if (!isWatched) {
    isWatched = true;
    process.stdout.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") {
        throw error;
      }
      process.exit();
    });
  }
}

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
