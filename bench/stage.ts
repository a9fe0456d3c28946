import { type Cores, chooseCores } from "./cores.js";
import { type Generator, startGenerator } from "./load/generator.js";
import { type Subject, startOnEmbeddedStore, startOnMongo } from "./servers.js";

/** All that is up while the benchmark runs. */
export interface Stage {
  readonly cores: Cores;
  /** For everything that must not stay. */
  readonly folder: string;
  readonly generator: Generator;
  readonly embedded: Subject;
  /** Absent where there is no MongoDB to be had. */
  readonly mongo: Subject | undefined;
}

export async function setUp(folder: string): Promise<Stage> {
  const cores = chooseCores();
  const generator = startGenerator(folder, cores.load);
  const embedded = await startOnEmbeddedStore(folder, cores);
  const mongo = await startOnMongo(cores);
  return { cores, folder, generator, embedded, mongo };
}

/** The one on the embedded store, and after it the one on MongoDB where there is one. */
export function subjectsOf({ embedded, mongo }: Stage): Subject[] {
  return mongo ? [embedded, mongo] : [embedded];
}

export function reportProgress(progress: string): void {
  console.error(`bench: ${progress}`);
}
