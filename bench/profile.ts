import { mkdir, readdir, readFile, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { costliestFunctions } from "./profile-summary.js";
import { type ScenarioName, scenarios } from "./requests/scenarios.js";
import { startLatchkey } from "./servers.js";
import { type Stage, tell } from "./stage.js";

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
  tell(`profile: ${path} for ${seconds} s`);
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
