import { statfs } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import { memoryOf } from "./measure.js";
import type { Plan } from "./plan.js";
import { connections, seededApplications } from "./seed.js";
import type { Server } from "./servers.js";
import type { Stage } from "./stage.js";

interface NamedServer {
  readonly name: string;
  readonly server: Server;
}

/** What one has to know of a run to judge its figures, in sentences. */
export async function factsOf(
  { cores, folder, generator, subjects }: Stage,
  { rounds, seconds }: Plan,
  servers: readonly NamedServer[],
): Promise<string[]> {
  const memory = servers.map(({ name, server }) => describeMemory(name, server));
  const hasMongo = subjects.length > 1;
  return [
    `${machine()}, ${new Date().toISOString().slice(0, 10)}.`,
    `${connections} connections, ${seededApplications.toLocaleString("en")} applications with 5 rules each at the start.`,
    `Rounds: ${rounds}, with ${seconds} s for each row. Figures are the median (lowest–highest).`,
    cores.server === undefined
      ? "Servers and load shared the cores, as there was no way to give them their own."
      : `Servers on core ${cores.server}, load on core ${cores.load}${hasMongo ? `, MongoDB on core ${cores.database}` : ""}.`,
    `Load made by ${generator.description}.`,
    `Memory of the servers at the end: ${memory.join(", ")}.`,
    ...((await isInMemory(folder))
      ? ["The embedded store was in a file system in memory, which flatters its writes."]
      : []),
    ...(hasMongo
      ? []
      : ["MongoDB was left out: no mongod could be had. `npm test` says how to get one."]),
  ];
}

function machine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() || "unknown processor";
  return `${processors.length} × ${model} (${arch()}), ${platform()} ${release()}, Node ${process.version}`;
}

function describeMemory(name: string, server: Server): string {
  const { whole, own } = memoryOf(server);
  return `${name} ${whole.toFixed(0)} MB (${own.toFixed(0)} MB without mapped files)`;
}

const tmpfs = 0x01021994;

/** Whether a folder is kept in memory, where syncing to disk costs nothing. */
async function isInMemory(folder: string): Promise<boolean> {
  return (await statfs(folder)).type === tmpfs;
}
