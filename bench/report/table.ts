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

/** The middle of some figures, and how far they are apart. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export function spreadOf(figures: readonly number[]): Spread {
  const sorted = figures.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const below = sorted[Math.floor(middle)] ?? Number.NaN;
  const above = sorted[Math.ceil(middle)] ?? Number.NaN;
  return {
    median: (below + above) / 2,
    low: sorted[0] ?? Number.NaN,
    high: sorted.at(-1) ?? Number.NaN,
  };
}

/** The figure that this many percent of the others do not exceed. */
export function percentile(figures: readonly number[], percent: number): number {
  const sorted = Float64Array.from(figures).sort();
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** By how much figures rise with each unit of what they were taken at: the line that lies closest to them. */
export function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (figures: number[]) => figures.reduce((sum, one) => sum + one, 0) / figures.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const rise = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  const run = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  return rise / run;
}
