import { type Colors, escapeUnprintable } from "../lib/terminal.js";
import type { Display } from "./output.js";
import { padText, textWidth, truncateText, wrapText } from "./text.js";

export interface Column<Row> {
  readonly title: string;
  text(row: Row): string;
  /** Colors a cell. */
  paint?(text: string, row: Row, colors: Colors): string;
  /** May be truncated. Optional columns are omitted before it is narrower than this. */
  readonly shrinkTo?: number;
  /** Whether it may be omitted if the table is too wide, or if none of the rows has a text for it. */
  readonly optional?: boolean;
  /** Its width if rows are not known in advance. */
  readonly minWidth?: number;
}

interface Table<Row> {
  readonly header: string;
  line(row: Row): string;
}

const gap = 2;
/** No column is truncated below this width, unless it crosses the edge of the terminal. */
const minShrunkWidth = 12;

/** Chooses the columns and widths for these rows so that each line fits the display. */
export function layoutTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { colors, width = Number.POSITIVE_INFINITY }: Display,
): Table<Row> {
  const natural = columns.flatMap((column) => {
    const widths = rows.map((row) => textWidth(escapeUnprintable(column.text(row))));
    const isEmpty = rows.length > 0 && widths.every((width) => width === 0);
    const minWidth = textWidth(column.title);
    const initial = rows.length > 0 ? minWidth : (column.minWidth ?? minWidth);
    return isEmpty && column.optional ? [] : [{ column, width: widths.reduce(larger, initial) }];
  });
  const sized = fitColumns(natural, width);

  function lineOf(textOf: (column: Column<Row>) => string, paint: Paint<Row>): string {
    const cells = sized.map(({ column, width }, index) => {
      const text = truncateText(escapeUnprintable(textOf(column)), width);
      const isLast = index === sized.length - 1;
      return paint(text, column) + (isLast ? "" : padText("", width - textWidth(text)));
    });
    return cells.join(" ".repeat(gap)).trimEnd();
  }

  return {
    header: lineOf(
      ({ title }) => title,
      (text) => colors.dim(text),
    ),
    line: (row) =>
      lineOf(
        ({ text }) => text(row),
        (text, column) => column.paint?.(text, row, colors) ?? text,
      ),
  };
}

export function formatTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  display: Display,
): string {
  const table = layoutTable(columns, rows, display);
  return [table.header, ...rows.map(table.line)].map((line) => `${line}\n`).join("");
}

/** A name, its value, and a dim text beside or below it, such as the id of an application. */
export type Detail = readonly [name: string, value: string | undefined, aside?: string | undefined];

/** Names and values, each on its own lines. Those without a value are omitted. */
export function formatDetails(
  details: readonly Detail[],
  { colors, width: maxWidth = Number.POSITIVE_INFINITY }: Display,
): string {
  const shown = details.filter(([, value]) => value !== undefined && value !== "");
  const nameWidth = shown.map(([name]) => textWidth(name)).reduce(larger, 0);
  const indent = " ".repeat(nameWidth + gap);
  const valueWidth = maxWidth - indent.length;
  return shown
    .map(([name, value = "", aside]) => {
      const lines = value
        .split(/\r?\n/)
        .flatMap((line) => wrapText(escapeUnprintable(line), valueWidth));
      const end = aside ? besideOrBelow(lines.at(-1) ?? "", escapeUnprintable(aside)) : "";
      const text = lines.join(`\n${indent}`) + end;
      return `${colors.dim(padText(name, nameWidth))}  ${text}\n`;
    })
    .join("");

  function besideOrBelow(line: string, aside: string): string {
    const fits = textWidth(line) + gap + textWidth(aside) <= valueWidth;
    return (fits ? " ".repeat(gap) : `\n${indent}`) + colors.dim(aside);
  }
}

/** A key or nonce, alone on its line: with its name before it, it would not fit 80 columns. */
export function formatSecret(name: string, secret: string, { colors }: Display): string {
  return `${colors.dim(name)}\n  ${escapeUnprintable(secret)}\n`;
}

type Paint<Row> = (text: string, column: Column<Row>) => string;

interface SizedColumn<Row> {
  readonly column: Column<Row>;
  readonly width: number;
}

/** Omits optional columns from the right, then shrinks the widest one, optional columns first. */
function fitColumns<Row>(
  natural: readonly SizedColumn<Row>[],
  maxWidth: number,
): SizedColumn<Row>[] {
  let fitted = [...natural];
  while (totalWidth(fitted.map(shrink)) > maxWidth) {
    const last = fitted.findLastIndex(({ column }) => column.optional);
    if (last < 0) {
      break;
    }
    fitted = fitted.toSpliced(last, 1);
  }
  for (let excess = totalWidth(fitted) - maxWidth; excess > 0; excess--) {
    const [widest] = fitted
      .filter(({ column, width }) => column.shrinkTo !== undefined && width > minShrunkWidth)
      .sort(
        (one, other) =>
          Number(other.column.optional ?? false) - Number(one.column.optional ?? false) ||
          other.width - one.width,
      );
    if (!widest) {
      return cutAtEdge(fitted, maxWidth);
    }
    fitted = fitted.map((sized) =>
      sized === widest ? { ...sized, width: sized.width - 1 } : sized,
    );
  }
  return fitted;
}

function shrink<Row>({ column, width }: SizedColumn<Row>): SizedColumn<Row> {
  return { column, width: Math.min(width, column.shrinkTo ?? width) };
}

/** The last resort: hides everything beyond the edge of the terminal. */
function cutAtEdge<Row>(
  columns: readonly SizedColumn<Row>[],
  maxWidth: number,
): SizedColumn<Row>[] {
  let left = maxWidth;
  return columns.map(({ column, width }) => {
    const visibleWidth = Math.max(0, Math.min(width, left));
    left -= width + gap;
    return { column, width: visibleWidth };
  });
}

function totalWidth(columns: readonly { readonly width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + width, gap * Math.max(0, columns.length - 1));
}

function larger(one: number, other: number): number {
  return Math.max(one, other);
}
