import { mkdir, readdir, readFile, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { reportProgress, type Stage } from "./context.js";
import { asText, type Column, format, tableOf } from "./report/table.js";
import { type ScenarioName, scenarios } from "./scenarios.js";
import { startLatchkey } from "./servers.js";

const folder = fileURLToPath(new URL("../dist/bench/profiles/", import.meta.url));
const seconds = 10;
const shownFunctions = 25;

/** Runs one kind of request on the embedded store, and leaves a CPU profile of the server. */
export async function profile(stage: Stage, path = "readByKey"): Promise<void> {
  if (!Object.hasOwn(scenarios, path)) {
    throw new Error(`there is no path ${path}, only ${Object.keys(scenarios).join(", ")}`);
  }
  const { embedded, cores, generator } = stage;
  const raw = join(stage.folder, "profiles");
  const server = await startLatchkey(embedded.store, {
    cores: cores.server,
    nodeOptions: ["--cpu-prof", `--cpu-prof-dir=${raw}`],
  });
  const target = { port: server.port, keys: embedded.keys, seconds };
  reportProgress(`profile: ${path} for ${seconds} s`);
  // Only sessions that were just made can be authorized; another process makes them.
  const elsewhere = { ...target, port: embedded.server.port };
  const kept =
    path === "authorizeSession"
      ? (await generator.run(scenarios.createSession.load(elsewhere, []))).answers
      : [];
  const load = scenarios[path as ScenarioName].load(target, kept);
  await generator.prove(load);
  await generator.run(load);
  await server.stop();

  await mkdir(folder, { recursive: true });
  const file = resolve(folder, `${path}-${Date.now()}.cpuprofile`);
  await rename(await largestIn(raw), file);
  console.log(costliestFunctions(await readFile(file, "utf8"), shownFunctions));
  console.log(`\nThe CPU profile is in ${file}: open it in the developer tools of a browser.`);
}

/** The one of the process that did the work. */
async function largestIn(folder: string): Promise<string> {
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const path = join(folder, name);
      return { path, size: (await stat(path)).size };
    }),
  );
  return files.reduce((a, b) => (a.size > b.size ? a : b)).path;
}

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
function costliestFunctions(profile: string, count: number): string {
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
