import type { Goal } from "../goals.js";
import type { Grown } from "./growth.js";
import type { Path } from "./loads.js";

const mostGrowth = 1.15;
const mostMegabytes = 150;
const startFactor = 1.5;
const startAllowance = 400;

/** What the smallest and the largest store have to say about the goals. */
export function goalsOfGrowth(all: readonly Grown[]): Goal[] {
  const least = all[0] as Grown;
  const greatest = all.at(-1) as Grown;
  const [few, many] = [inWords(least), inWords(greatest)];

  const growthOf = (path: Path, what: string): Goal => ({
    path: `Growth: ${what}`,
    promise: `at ${many} ≤ ${mostGrowth} × at ${few}`,
    limit: { atMost: mostGrowth },
    figures: ratios(greatest.cpu[path], least.cpu[path]),
  });

  return [
    {
      path: "Memory of a worker",
      promise: `≤ ${mostMegabytes} MB at ${many}, without the mapped data`,
      limit: { atMost: mostMegabytes },
      figures: [greatest.memory.own],
      digits: 0,
    },
    ...[least, greatest].map(startGoal),
    growthOf("read", "CPU of GET by key"),
    {
      path: "Growth: pages by cursor",
      promise: `the last ≤ ${mostGrowth} × the first, at ${many}`,
      limit: { atMost: mostGrowth },
      figures: ratios(greatest.cpu.lastPage, greatest.cpu.firstPage),
    },
    growthOf("update", "CPU of an update"),
  ];
}

function startGoal({ store, starts }: Grown): Goal {
  return {
    path: `Start to ready with ${store.size.toLocaleString("en")} applications`,
    promise: `≤ ${startAllowance} ms beyond ${startFactor} × node -e 0`,
    limit: { atMost: startAllowance },
    figures: starts.map(
      ({ node, ready }) => (ready.get(store.size) ?? Number.NaN) - startFactor * node,
    ),
    digits: 0,
  };
}

function ratios(own: readonly number[], others: readonly number[]): number[] {
  return own.map((figure, at) => figure / (others[at] as number));
}

function inWords({ store }: Grown): string {
  return `${store.size.toLocaleString("en")} applications`;
}
