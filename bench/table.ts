import type { Spread } from "./statistics.js";

/** How one figure of a thing is shown. */
export interface Column<Row> {
  readonly title: string;
  readonly isText?: boolean;
  text(row: Row): string;
}

/** Cells with their headings. */
export interface Table {
  readonly columns: readonly { readonly title: string; readonly isText?: boolean }[];
  readonly rows: readonly (readonly string[])[];
}

export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Table {
  return { columns, rows: rows.map((row) => columns.map(({ text }) => text(row))) };
}

/** The table in columns of even width. */
export function asText({ columns, rows }: Table): string {
  const cells = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, at) => {
        const width = widths[at] as number;
        return columns[at]?.isText ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  "),
  );
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}

export function asMarkdown({ columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ isText }) => (isText ? "---" : "---:"))),
    ...rows.map(line),
  ].join("\n");
}

export function withRange({ median, low, high }: Spread, digits: number): string {
  return Number.isNaN(median)
    ? "–"
    : `${format(median, digits)} (${format(low, digits)}–${format(high, digits)})`;
}

export function format(figure: number, digits: number): string {
  return Number.isNaN(figure)
    ? "–"
    : figure.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
