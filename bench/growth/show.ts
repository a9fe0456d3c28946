import { type Spread, spreadOf } from "../statistics.js";
import { drawPlot, type Series } from "../svg/plot.js";
import { type Column, format, withRange } from "../table.js";
import type { Grown } from "./growth.js";
import type { Path } from "./loads.js";

const nodeTitle = "node -e 0 ms";

export const columns: readonly Column<Grown>[] = [
  { title: "Applications", text: ({ store }) => format(store.size, 0) },
  { title: "CPU µs: GET by key", text: withSpread("read") },
  { title: "first page", text: withSpread("firstPage") },
  { title: "last page", text: withSpread("lastPage") },
  { title: "update", text: withSpread("update") },
  { title: "Start to ready ms", text: (grown) => withRange(readyOf(grown), 0) },
  {
    title: nodeTitle,
    text: ({ starts }) => withRange(spreadOf(starts.map(({ node }) => node)), 0),
  },
  { title: "RSS MB", text: ({ memory }) => format(memory.whole, 0) },
  { title: "RSS without data file", text: ({ memory }) => format(memory.own, 0) },
];

/** The table of the page leaves out the time that Node.js itself takes to start. */
export const pageColumns = columns.filter(({ title }) => title !== nodeTitle);

function withSpread(path: Path): (grown: Grown) => string {
  return ({ cpu }) => withRange(spreadOf(cpu[path]), 0);
}

function readyOf({ store, starts }: Grown): Spread {
  return spreadOf(starts.map(({ ready }) => ready.get(store.size) ?? Number.NaN));
}

const lines: readonly { path: Path; name: string; values: Series["values"] }[] = [
  { path: "lastPage", name: "last page of the list", values: "above" },
  { path: "update", name: "update of one", values: "above" },
  { path: "read", name: "GET by key", values: "below" },
];

export function plotOf(all: readonly Grown[]): string {
  return drawPlot({
    title: "CPU time of a request against the number of applications",
    x: { label: "applications", isLogarithmic: true },
    y: { label: "CPU µs per request" },
    series: lines.map(({ path, name, values }) => ({
      name,
      values,
      points: all.map(({ store, cpu }) => ({ x: store.size, y: spreadOf(cpu[path]).median })),
    })),
  });
}
