import { type Cores, chooseCores } from "./cores.js";
import { type Generator, startGenerator } from "./load/generator.js";
import { type Subject, startOnEmbeddedStore, startOnMongo } from "./subjects.js";

/** All that is up while the benchmark runs. */
export interface Stage {
  readonly cores: Cores;
  /** For everything that must not stay. */
  readonly folder: string;
  readonly generator: Generator;
  /** The one on the embedded store, and after it the one on MongoDB, where that can be had. */
  readonly subjects: readonly [Subject, ...Subject[]];
}

export async function setUp(folder: string): Promise<Stage> {
  const cores = chooseCores();
  const generator = startGenerator(folder, cores.load);
  const embedded = await startOnEmbeddedStore(folder, cores, generator);
  const mongo = await startOnMongo(cores, generator);
  return { cores, folder, generator, subjects: mongo ? [embedded, mongo] : [embedded] };
}

export function tell(progress: string): void {
  console.error(`bench: ${progress}`);
}
