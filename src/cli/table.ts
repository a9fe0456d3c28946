import { visible } from "../transfer/visible.js";
import type { Colours } from "./colours.js";
import { cutText, padText, textWidth, wrapText } from "./text-width.js";

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
export interface Table<Row> {
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
