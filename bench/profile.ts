import { mkdir, readdir, readFile, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type BenchContext, reportProgress } from "./context.js";
import { asText, type Column, createTable, format } from "./report/table.js";
import { type ScenarioName, scenarios } from "./scenarios.js";
import { startLatchkey } from "./servers.js";

const outputFolder = fileURLToPath(new URL("../dist/bench/profiles/", import.meta.url));
const seconds = 10;
const maxFunctions = 25;

/** Runs one scenario on the embedded store and writes a CPU profile of the server. */
export async function profile(context: BenchContext, name = "readByKey"): Promise<void> {
  if (!Object.hasOwn(scenarios, name)) {
    throw new Error(
      `unknown scenario ${name}; the scenarios are ${Object.keys(scenarios).join(", ")}`,
    );
  }
  const { embedded, cores, generator } = context;
  const profileFolder = join(context.folder, "profiles");
  const server = await startLatchkey(embedded.store, {
    cores: cores.server,
    nodeOptions: ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`],
  });
  reportProgress(`profile: ${name} for ${seconds} s`);
  // Sessions to authorize are created through another process, so that the profile omits it.
  const createSessions = scenarios.createSession.load(embedded, []);
  const previousResponses =
    name === "authorizeSession"
      ? (await generator.run(embedded.server, createSessions, seconds)).responses
      : [];
  const target = { server, keys: embedded.keys };
  const load = scenarios[name as ScenarioName].load(target, previousResponses);
  await generator.verify(server, load);
  await generator.run(server, load, seconds);
  await server.stop();

  await mkdir(outputFolder, { recursive: true });
  const file = resolve(outputFolder, `${name}-${Date.now()}.cpuprofile`);
  await rename(await findLargest(profileFolder), file);
  console.log(listHottestFunctions(await readFile(file, "utf8"), maxFunctions));
  console.log(`\nThe CPU profile is in ${file}: open it in the developer tools of a browser.`);
}

/** Finds the profile of the process that handled the requests. */
async function findLargest(folder: string): Promise<string> {
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const path = join(folder, name);
      return { path, size: (await stat(path)).size };
    }),
  );
  return files.reduce((a, b) => (a.size > b.size ? a : b)).path;
}

/** The fields of a .cpuprofile that are used here. */
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

/** Lists the functions with the most self time. Idle time is left out. */
function listHottestFunctions(profile: string, count: number): string {
  const { nodes, samples, timeDeltas }: Profile = JSON.parse(profile);
  const names = new Map(nodes.map(({ id, callFrame }) => [id, formatCallFrame(callFrame)]));
  const times = new Map<string, number>();
  samples.forEach((id, index) => {
    const name = names.get(id) as string;
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[index] ?? 0));
  });
  times.delete("(idle)");
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  const costs = [...times]
    .map(([name, microseconds]) => ({ name, microseconds, share: microseconds / total }))
    .sort((a, b) => b.microseconds - a.microseconds);
  return asText(createTable(columns, costs.slice(0, count)));
}

function formatCallFrame({
  functionName,
  url,
  lineNumber,
}: Profile["nodes"][number]["callFrame"]): string {
  const location =
    url === "" ? "" : ` ${url.replace(/^.*\/(dist|node_modules)\//, "")}:${lineNumber + 1}`;
  return `${functionName || "(anonymous)"}${location}`;
}
