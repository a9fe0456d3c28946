import type { Estimate } from "./estimate.js";

/** A column and how to render its cell for a row. */
export interface Column<Row> {
  readonly title: string;
  readonly isText?: boolean;
  text(row: Row): string;
}

export interface Table {
  readonly columns: readonly { readonly title: string; readonly isText?: boolean }[];
  readonly rows: readonly (readonly string[])[];
}

export function createTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Table {
  return { columns, rows: rows.map((row) => columns.map(({ text }) => text(row))) };
}

/** Renders columns of equal width for the console. */
export function asText({ columns, rows }: Table): string {
  const cells = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, index) =>
    Math.max(...cells.map((row) => row[index]?.length ?? 0)),
  );
  const lines = cells.map((row) =>
    row
      .map((cell, index) => {
        const width = widths[index] as number;
        return columns[index]?.isText ? cell.padEnd(width) : cell.padStart(width);
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

/** The lowest value, then the median in parentheses. */
export function formatEstimate({ lowest, median }: Estimate, digits: number): string {
  return Number.isNaN(lowest) ? "–" : `${format(lowest, digits)} (${format(median, digits)})`;
}

export function format(value: number, digits: number): string {
  return Number.isNaN(value)
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Returns the slope of a linear regression. */
export function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const rise = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  const run = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  return rise / run;
}
