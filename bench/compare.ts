import { join } from "node:path";
import { buildCommit } from "./commit.js";
import { reportProgress, startDatabase } from "./context.js";
import { type LoadGenerator, startGenerator } from "./load/generator.js";
import { isSelected, type Plan } from "./plan.js";
import { type Cores, chooseCores } from "./processes.js";
import { combine, type Estimate, estimate, ratio } from "./report/estimate.js";
import { asText, type Column, createTable, formatEstimate } from "./report/table.js";
import { type Contender, runRounds, type Sample, type Samples } from "./rounds.js";
import { connections, type ScenarioName, scenarios } from "./scenarios.js";
import { type Keys, seed } from "./seed.js";
import {
  type LatchkeyOptions,
  ownFolder,
  type Server,
  type StoreEnvironment,
  startLatchkey,
} from "./servers.js";

/** What is compared: one request, or several that belong together. */
interface Comparison {
  readonly store: "embedded" | "mongo";
  readonly scenarios: readonly ScenarioName[];
  readonly connections: number;
}

const reads: readonly ScenarioName[] = ["readByKey", "checkOverRest", "listApplications"];
const writes: readonly (readonly ScenarioName[])[] = [
  ["createSession"],
  ["createSession", "authorizeSession"],
  ["createApplication"],
  ["updateApplication"],
];

const comparisons = (["embedded", "mongo"] as const).flatMap((store): Comparison[] => [
  ...writes.map((names) => ({ store, scenarios: names, connections })),
  ...reads.map((name) => ({ store, scenarios: [name], connections })),
  // Without requests that wait for each other: how long the commands of a change take.
  ...(store === "mongo"
    ? writes.map((names) => ({ store, scenarios: names, connections: 1 }))
    : []),
]);

/** A name such as `mongo/createSession+authorizeSession/1`. */
function nameOf({ store, scenarios: names, connections: count }: Comparison): string {
  return `${store}/${names.join("+")}/${count}`;
}

const sides = ["reference", "own"] as const;
type Side = (typeof sides)[number];

/** One commit on one store. */
interface Variant {
  readonly side: Side;
  readonly store: Comparison["store"];
  readonly environment: StoreEnvironment;
  readonly options: LatchkeyOptions;
  readonly databasePid: number | undefined;
  readonly keys: Keys;
}

/**
 * Compares the cost of requests with another commit. Both take turns, in several processes each,
 * because JIT compilation makes equal processes differ.
 */
export async function compareCommits(ref: string, parent: string, plan: Plan): Promise<string> {
  const selected = comparisons.filter((comparison) => isSelected(plan, nameOf(comparison)));
  if (selected.length === 0) {
    throw new Error(`no such comparison; they are\n${comparisons.map(nameOf).join("\n")}`);
  }
  reportProgress(`building ${ref}`);
  const commit = await buildCommit(ref, parent);
  const cores = chooseCores();
  const generator = startGenerator(cores.load);
  const folders = { reference: commit.folder, own: ownFolder };
  const variants = await fillStores(selected, plan.compare.applications, {
    parent,
    cores,
    generator,
    folders,
  });
  const samples = new Map<string, Sample[]>();
  for (let process = 1; process <= plan.compare.processes; process++) {
    // Neither is always the first.
    variants.reverse();
    const round = `processes ${process} of ${plan.compare.processes}`;
    for (const [name, added] of await measureNewProcesses(
      selected,
      variants,
      generator,
      plan,
      round,
    )) {
      samples.set(name, [...(samples.get(name) ?? []), ...added]);
    }
  }
  const outcomes = selected.map((comparison) => summarize(comparison, samples));
  return asText(createTable(createColumns(commit.name), outcomes));
}

interface Filling {
  readonly parent: string;
  readonly cores: Cores;
  readonly generator: LoadGenerator;
  readonly folders: Readonly<Record<Side, string>>;
}

/** Fills the stores that are needed, one for each commit. */
async function fillStores(
  selected: readonly Comparison[],
  count: number,
  { parent, cores, generator, folders }: Filling,
): Promise<Variant[]> {
  const stores = [...new Set(selected.map(({ store }) => store))];
  const database = stores.includes("mongo") ? await startDatabase(cores) : undefined;
  const variants: Variant[] = [];
  for (const store of stores) {
    for (const side of sides) {
      reportProgress(`filling ${store}, ${side}`);
      const environment =
        store === "mongo"
          ? { ...database?.store, MONGODB_DATABASE: side }
          : { DATA_DIR: join(parent, `data-${side}`) };
      const options = { cores: cores.server, folder: folders[side] };
      const keys = await seed(environment, options, generator, count);
      const databasePid = store === "mongo" ? database?.pid : undefined;
      variants.push({ side, store, environment, options, databasePid, keys });
    }
  }
  return variants;
}

async function measureNewProcesses(
  selected: readonly Comparison[],
  variants: readonly Variant[],
  generator: LoadGenerator,
  plan: Plan,
  title: string,
): Promise<Samples<string>> {
  const running: (Variant & { readonly server: Server })[] = [];
  for (const variant of variants) {
    const server = await startLatchkey(variant.environment, variant.options);
    running.push({ ...variant, server: { ...server, databasePid: variant.databasePid } });
  }
  const contenders = new Map<string, Contender>();
  for (const { store, scenarios: names, connections: count } of selected) {
    for (const name of names) {
      for (const { side, server, keys } of running.filter((variant) => variant.store === store)) {
        contenders.set(caseOf(side, store, name, count), {
          server,
          load: (previous) => ({
            ...scenarios[name].load({ server, keys }, previous),
            connections: count,
          }),
        });
      }
    }
  }
  const samples = await runRounds(title, contenders, { generator }, { ...plan, ...plan.compare });
  await Promise.all(running.map(({ server }) => server.stop()));
  return samples;
}

function caseOf(side: Side, store: string, scenario: ScenarioName, count: number): string {
  return `${side} ${store}/${scenario}/${count}`;
}

/** What the requests of a comparison need together. */
interface Need {
  readonly cpu: Estimate;
  readonly databaseCpu: Estimate;
  /** The time per request of all connections together. */
  readonly time: Estimate;
  readonly p50: Estimate;
}

interface Outcome extends Record<Side, Need> {
  readonly comparison: Comparison;
}

function summarize(comparison: Comparison, samples: Samples<string>): Outcome {
  const { store, scenarios: names, connections: count } = comparison;
  const need = (side: Side): Need => {
    const sumOf = (select: (sample: Sample) => number) =>
      names
        .map((name) => estimate((samples.get(caseOf(side, store, name, count)) ?? []).map(select)))
        .reduce((sum, added) => combine(sum, added, (a, b) => a + b));
    return {
      cpu: sumOf(({ cpu }) => cpu),
      databaseCpu: sumOf(({ databaseCpu }) => databaseCpu),
      time: sumOf(({ requestsPerSecond }) => 1 / requestsPerSecond),
      p50: sumOf(({ p50 }) => p50),
    };
  };
  return { comparison, reference: need("reference"), own: need("own") };
}

function createColumns(commit: string): readonly Column<Outcome>[] {
  return [
    { title: "Comparison", isText: true, text: ({ comparison }) => nameOf(comparison) },
    { title: `CPU µs, ${commit}`, text: ({ reference }) => formatEstimate(reference.cpu, 0) },
    { title: "here", text: ({ own }) => formatEstimate(own.cpu, 0) },
    {
      title: "CPU ×",
      text: ({ own, reference }) => formatEstimate(ratio(own.cpu, reference.cpu), 2),
    },
    {
      title: "mongod CPU ×",
      text: ({ own, reference }) =>
        formatEstimate(ratio(own.databaseCpu, reference.databaseCpu), 2),
    },
    {
      title: "requests/s ×",
      text: ({ own, reference }) => formatEstimate(ratio(reference.time, own.time), 2),
    },
    {
      title: "p50 ×",
      text: ({ own, reference }) => formatEstimate(ratio(own.p50, reference.p50), 2),
    },
  ];
}
