import { styleText } from "node:util";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { visible } from "../lib/printable.js";
import type { ClientEnvironment } from "./environment.js";

export interface Column<Row> {
  readonly title: string;
  text(row: Row): string;
  /** Paints what stands in the column. */
  paint?(text: string, row: Row, colours: Colours): string;
  /** Whether it may be cut where there is no room for all; down to a few characters. */
  readonly shrinks?: boolean;
  /** Whether it is left out where there is no room even so. */
  readonly isExtra?: boolean;
  /** How wide it is at least, where its rows are not known beforehand. */
  readonly least?: number;
}

/** Where a table is shown. */
export interface Look {
  readonly colours: Colours;
  /** The cells of a line; unlimited where it is no terminal. */
  readonly width?: number | undefined;
}

/** A table whose columns have their widths. */
interface Table<Row> {
  readonly header: string;
  line(row: Row): string;
}

const gap = 2;
const leastShrunk = 12;

/** Lays out columns for these rows, so that they fit where they are shown. */
export function layOut<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { colours, width = Number.POSITIVE_INFINITY }: Look,
): Table<Row> {
  const natural = columns.map((column) => {
    const texts = rows.map((row) => textWidth(visible(column.text(row))));
    return { column, width: texts.reduce(larger, column.least ?? textWidth(column.title)) };
  });
  const laid = fitInto(natural, width);

  function lineOf(textOf: (column: Column<Row>) => string, paint: Paint<Row>): string {
    const cells = laid.map(({ column, width: cells }, place) => {
      const text = cutText(visible(textOf(column)), cells);
      const isLast = place === laid.length - 1;
      return paint(text, column) + (isLast ? "" : padText("", cells - textWidth(text)));
    });
    return cells.join(" ".repeat(gap)).trimEnd();
  }

  return {
    header: lineOf(
      ({ title }) => title,
      (text) => colours.faint(text),
    ),
    line: (row) =>
      lineOf(
        ({ text }) => text(row),
        (text, column) => column.paint?.(text, row, colours) ?? text,
      ),
  };
}

/** A whole table as a text. */
export function tableText<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  look: Look,
): string {
  const table = layOut(columns, rows, look);
  return [table.header, ...rows.map(table.line)].map((line) => `${line}\n`).join("");
}

type Paint<Row> = (text: string, column: Column<Row>) => string;

interface Laid<Row> {
  readonly column: Column<Row>;
  readonly width: number;
}

/** Leaves out, and then cuts, what there is no room for. */
function fitInto<Row>(natural: readonly Laid<Row>[], room: number): Laid<Row>[] {
  let kept = [...natural];
  while (total(kept.map(shrunk)) > room) {
    const last = kept.findLastIndex(({ column }) => column.isExtra);
    if (last < 0) {
      break;
    }
    kept = kept.toSpliced(last, 1);
  }
  for (let over = total(kept) - room; over > 0; over--) {
    const widest = kept
      .filter(({ column, width }) => column.shrinks && width > leastShrunk)
      .reduce<Laid<Row> | undefined>(
        (one, other) => (one && one.width >= other.width ? one : other),
        undefined,
      );
    if (!widest) {
      return cutAtEdge(kept, room);
    }
    kept = kept.map((laid) => (laid === widest ? { ...laid, width: laid.width - 1 } : laid));
  }
  return kept;
}

function shrunk<Row>({ column, width }: Laid<Row>): Laid<Row> {
  return { column, width: column.shrinks ? Math.min(width, leastShrunk) : width };
}

/** Where nothing more can be done, what lies beyond the edge is not shown. */
function cutAtEdge<Row>(kept: readonly Laid<Row>[], room: number): Laid<Row>[] {
  let left = room;
  return kept.map(({ column, width }) => {
    const cells = Math.max(0, Math.min(width, left));
    left -= width + gap;
    return { column, width: cells };
  });
}

function total(laid: readonly { readonly width: number }[]): number {
  return laid.reduce((sum, { width }) => sum + width, gap * Math.max(0, laid.length - 1));
}

function larger(one: number, other: number): number {
  return Math.max(one, other);
}

/** Facts below each other, each after its name. Those without a value are left out. */
export function detailsText(
  facts: readonly (readonly [string, string | undefined])[],
  { colours, width: room = Number.POSITIVE_INFINITY }: Look,
): string {
  const told = facts.filter(([, value]) => value !== undefined && value !== "");
  const width = told.map(([name]) => textWidth(name)).reduce(larger, 0);
  const indent = " ".repeat(width + gap);
  return told
    .map(([name, value = ""]) => {
      const lines = wrapText(visible(value), room - indent.length);
      return `${colours.faint(padText(name, width))}  ${lines.join(`\n${indent}`)}\n`;
    })
    .join("");
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

const mark = /^[\p{M}\p{Cf}]/u;
/** What a terminal shows in two cells: emoji, and the scripts of East Asia. */
const wide =
  /^[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;

/** How many cells of a terminal a text takes. */
export function textWidth(text: string): number {
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += widthOf(segment);
  }
  return width;
}

/** A text that takes so many cells at most, with a sign where something is left out. */
export function cutText(text: string, most: number): string {
  if (text.length <= most && textWidth(text) <= most) {
    return text;
  }
  let kept = "";
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += widthOf(segment);
    if (width > most - 1) {
      return most > 0 ? `${kept}…` : "";
    }
    kept += segment;
  }
  return kept;
}

export function padText(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** The lines of a text, broken between words where one would take more cells. */
export function wrapText(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && textWidth(longer) > most) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

function widthOf(segment: string): number {
  return mark.test(segment) ? 0 : wide.test(segment) ? 2 : 1;
}

/** Paints texts, or leaves them as they are. */
interface Colours {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  /** What matters less. */
  faint(text: string): string;
  strong(text: string): string;
}

type Style = Parameters<typeof styleText>[0];

/** Colours are for people: a terminal has them unless the environment says otherwise. */
export function createColours(
  { isTTY }: Pick<NodeJS.WriteStream, "isTTY">,
  { colours: wish }: Pick<ClientEnvironment, "colours">,
): Colours {
  const isOn = wish ?? isTTY === true;
  // Whether the stream has colours is decided here.
  const paint = (style: Style) => (text: string) =>
    isOn && text ? styleText(style, text, { validateStream: false }) : text;
  return {
    good: paint("green"),
    bad: paint("red"),
    warn: paint("yellow"),
    faint: paint("dim"),
    strong: paint("bold"),
  };
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** How long something is, in its largest unit. */
function durationText(milliseconds: number): string {
  const [unit, size] = units.find(([, size]) => milliseconds >= size) ?? units[3];
  return `${Math.floor(milliseconds / size)}${unit}`;
}

/** When something is, seen from now. */
export function relativeText(
  moment: Timestamp | undefined,
  now = Date.now(),
  absent = "–",
): string {
  if (!moment) {
    return absent;
  }
  const distance = timestampMs(moment) - now;
  return distance > 0 ? `in ${durationText(distance)}` : `${durationText(-distance)} ago`;
}

/** A moment, and how far it is. */
export function momentText(moment: Timestamp | undefined, now = Date.now()): string | undefined {
  return moment && `${isoText(moment)} (${relativeText(moment, now)})`;
}

export function isoText(moment: Timestamp): string {
  return new Date(timestampMs(moment)).toISOString();
}
