import { join } from "node:path";
import { startMongod } from "../test/support/mongo/mongod.js";
import { onExit } from "./child-processes.js";
import { type LoadGenerator, startGenerator } from "./load/generator.js";
import { type Cores, chooseCores, pinProcess } from "./processes.js";
import { type Keys, seed, seededApplications } from "./seed.js";
import {
  type LatchkeyOptions,
  type Server,
  type StoreEnvironment,
  startLatchkey,
} from "./servers.js";

/** What all suites share: the load generator and the instances of Latchkey. */
export interface BenchContext {
  readonly cores: Cores;
  /** Removed at the end. */
  readonly folder: string;
  readonly generator: LoadGenerator;
  readonly embedded: Instance;
  /** Absent if MongoDB is not available. */
  readonly mongo: Instance | undefined;
}

export async function createContext(folder: string): Promise<BenchContext> {
  const cores = chooseCores();
  const generator = startGenerator(cores.load);
  const embedded = await startWithEmbeddedStore(folder, cores, generator);
  const mongo = await startWithMongo(cores, generator);
  return { cores, folder, generator, embedded, mongo };
}

/** The instances on all available stores. */
export function listInstances({ embedded, mongo }: BenchContext): Instance[] {
  return mongo ? [embedded, mongo] : [embedded];
}

export function reportProgress(progress: string): void {
  console.error(`bench: ${progress}`);
}

/** A running Latchkey with a seeded store. */
export interface Instance {
  readonly name: string;
  readonly server: Server;
  readonly keys: Keys;
  /** Starts another Latchkey on the same data. */
  readonly store: StoreEnvironment;
  /** The process id of MongoDB. */
  readonly databasePid?: number;
}

function startWithEmbeddedStore(
  folder: string,
  cores: Cores,
  generator: LoadGenerator,
): Promise<Instance> {
  return startInstance(
    "embedded store",
    { DATA_DIR: join(folder, "data") },
    { cores: cores.server },
    generator,
  );
}

async function startWithMongo(
  cores: Cores,
  generator: LoadGenerator,
): Promise<Instance | undefined> {
  const mongod = await startDatabase(cores);
  return (
    mongod && {
      ...(await startInstance("MongoDB", mongod.store, { cores: cores.server }, generator)),
      databasePid: mongod.pid,
    }
  );
}

/** A MongoDB and the settings that select it. */
interface Database {
  readonly store: StoreEnvironment;
  readonly pid: number;
}

/** Returns `undefined` if MongoDB is not available. */
export async function startDatabase(cores: Cores): Promise<Database | undefined> {
  const starting = startMongod().catch((error: Error) => console.error(`bench: ${error.message}`));
  // It cannot be stopped before it has started.
  onExit(async () => (await starting)?.stop());
  const mongod = await starting;
  if (!mongod) {
    return undefined;
  }
  pinProcess(mongod.pid, cores.database);
  return { store: { MONGODB_URI: mongod.uri, MONGODB_DATABASE: "latchkey" }, pid: mongod.pid };
}

/** Fills a new store and starts Latchkey on it. */
export async function startInstance(
  name: string,
  store: StoreEnvironment,
  options: LatchkeyOptions,
  generator: LoadGenerator,
): Promise<Instance> {
  const keys = await seed(store, options, generator, seededApplications);
  return { name, store, keys, server: await startLatchkey(store, options) };
}
