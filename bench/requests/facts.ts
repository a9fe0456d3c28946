import { statfs } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import type { Plan } from "../plan.js";
import { seededApplications } from "../seed.js";
import type { Stage } from "../stage.js";
import { connections } from "./scenarios.js";

/** What one has to know of a run to judge its figures, in sentences. */
export async function factsOf(
  { cores, folder, generator, mongo }: Stage,
  { rounds, seconds }: Plan,
): Promise<string[]> {
  return [
    `${machine()}, ${new Date().toISOString().slice(0, 10)}.`,
    `${connections} connections where nothing else is said, ${seededApplications.toLocaleString("en")} applications with 5 rules each at the start, one server process (\`WORKERS=1\`).`,
    `Rounds: ${rounds}, with ${seconds} s for each row. Figures are the median (lowest–highest).`,
    cores.server === undefined
      ? "Servers and load shared the cores, as there was no way to give them their own."
      : `Servers on core ${cores.server}, load on core ${cores.load}${mongo ? `, MongoDB on core ${cores.database}` : ""}.`,
    `Load made by ${generator.description}.`,
    ...((await isInMemory(folder))
      ? ["The embedded store was in a file system in memory, which flatters its writes."]
      : []),
    ...(mongo
      ? []
      : ["MongoDB was left out: no mongod could be had. `npm test` says how to get one."]),
  ];
}

function machine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() || "unknown processor";
  return `${processors.length} × ${model} (${arch()}), ${platform()} ${release()}, Node ${process.version}`;
}

const tmpfs = 0x01021994;

/** Whether a folder is kept in memory, where syncing to disk costs nothing. */
async function isInMemory(folder: string): Promise<boolean> {
  return (await statfs(folder)).type === tmpfs;
}
