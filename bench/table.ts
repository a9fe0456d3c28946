import type { Result } from "./results.js";
import type { Spread } from "./statistics.js";

interface Column {
  readonly title: string;
  readonly isText?: boolean;
  text(result: Result): string;
}

const columns: readonly Column[] = [
  { title: "Server", isText: true, text: ({ server }) => server },
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Requests/s", text: ({ requestsPerSecond }) => withRange(requestsPerSecond, 0) },
  { title: "p50 ms", text: ({ p50 }) => format(p50.median, 2) },
  { title: "p99 ms", text: ({ p99 }) => format(p99.median, 2) },
  { title: "CPU µs/request", text: ({ cpu }) => withRange(cpu, 0) },
  { title: "CPU × bare", text: ({ ratio }) => withRange(ratio, 1) },
];

/** The results in columns of even width. */
export function asText(results: readonly Result[]): string {
  const cells = [columns.map(({ title }) => title), ...results.map(cellsOf)];
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

export function asMarkdown(results: readonly Result[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ isText }) => (isText ? "---" : "---:"))),
    ...results.map((result) => line(cellsOf(result))),
  ].join("\n");
}

function cellsOf(result: Result): string[] {
  return columns.map(({ text }) => text(result));
}

function withRange({ median, low, high }: Spread, digits: number): string {
  return `${format(median, digits)} (${format(low, digits)}–${format(high, digits)})`;
}

function format(figure: number, digits: number): string {
  return Number.isNaN(figure)
    ? "–"
    : figure.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
