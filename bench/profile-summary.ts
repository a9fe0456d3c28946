import { asText, type Column, format, tableOf } from "./table.js";

/** The part of a .cpuprofile that is used here. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  /** Microseconds from each sample to the next. */
  readonly timeDeltas: readonly number[];
}

interface Cost {
  readonly name: string;
  readonly microseconds: number;
  readonly share: number;
}

const columns: readonly Column<Cost>[] = [
  { title: "Self ms", text: ({ microseconds }) => format(microseconds / 1000, 0) },
  { title: "Share", text: ({ share }) => `${format(share * 100, 1)} %` },
  { title: "Function", isText: true, text: ({ name }) => name },
];

/** The functions that the most time was spent in, without what they called. Waiting is left out. */
export function costliestFunctions(profile: string, count: number): string {
  const { nodes, samples, timeDeltas }: Profile = JSON.parse(profile);
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  samples.forEach((id, at) => {
    const name = names.get(id) as string;
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[at] ?? 0));
  });
  times.delete("(idle)");
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  const costs = [...times]
    .map(([name, microseconds]) => ({ name, microseconds, share: microseconds / total }))
    .sort((a, b) => b.microseconds - a.microseconds);
  return asText(tableOf(columns, costs.slice(0, count)));
}

function nameOf({ functionName, url, lineNumber }: Profile["nodes"][number]["callFrame"]): string {
  const place =
    url === "" ? "" : ` ${url.replace(/^.*\/(dist|node_modules)\//, "")}:${lineNumber + 1}`;
  return `${functionName || "(anonymous)"}${place}`;
}
