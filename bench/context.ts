import { join } from "node:path";
import { startMongod } from "../test/support/mongo/mongod.js";
import { onExit } from "./child-processes.js";
import { type Generator, startGenerator } from "./load/generator.js";
import { type Cores, chooseCores, pin } from "./processes.js";
import { type Keys, seed, seededApplications } from "./seed.js";
import { type Server, type StoreEnvironment, startLatchkey } from "./servers.js";

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

/** A Latchkey that is running on a store with applications in it. */
export interface Subject {
  readonly name: string;
  readonly server: Server;
  readonly keys: Keys;
  /** Lets another Latchkey run on the same data. */
  readonly store: StoreEnvironment;
  /** The process of the database, where it is one of its own. */
  readonly database?: number;
}

function startOnEmbeddedStore(folder: string, cores: Cores): Promise<Subject> {
  return startSubject("embedded store", { DATA_DIR: join(folder, "data") }, cores);
}

/** Answers `undefined` where there is no MongoDB to be had. */
async function startOnMongo(cores: Cores): Promise<Subject | undefined> {
  const starting = startMongod().catch((error: Error) => console.error(`bench: ${error.message}`));
  // It cannot be stopped before it has started.
  onExit(async () => (await starting)?.stop());
  const mongod = await starting;
  if (!mongod) {
    return undefined;
  }
  pin(mongod.pid, cores.database);
  const store = { MONGODB_URI: mongod.uri, MONGODB_DATABASE: "latchkey" };
  return { ...(await startSubject("MongoDB", store, cores)), database: mongod.pid };
}

async function startSubject(name: string, store: StoreEnvironment, cores: Cores): Promise<Subject> {
  const keys = await seed(store, seededApplications);
  return { name, store, keys, server: await startLatchkey(store, { cores: cores.server }) };
}
