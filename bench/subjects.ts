import { join } from "node:path";
import { startMongod } from "../test/support/mongod.js";
import { onExit } from "./cleanup.js";
import { type Cores, pin } from "./cores.js";
import type { Generator } from "./load/generator.js";
import { type Keys, seed } from "./seed.js";
import { bootstrap, type Server, type StoreEnvironment, startLatchkey } from "./servers.js";

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

export function startOnEmbeddedStore(
  folder: string,
  cores: Cores,
  generator: Generator,
): Promise<Subject> {
  return startSubject("embedded store", { DATA_DIR: join(folder, "data") }, cores, generator);
}

/** Answers `undefined` where there is no MongoDB to be had. */
export async function startOnMongo(
  cores: Cores,
  generator: Generator,
): Promise<Subject | undefined> {
  const starting = startMongod().catch((error: Error) => console.error(`bench: ${error.message}`));
  // It cannot be stopped before it has started.
  onExit(async () => (await starting)?.stop());
  const mongod = await starting;
  if (!mongod) {
    return undefined;
  }
  pin(mongod.pid, cores.database);
  const subject = await startSubject("MongoDB", { MONGODB_URI: mongod.uri }, cores, generator);
  return { ...subject, database: mongod.pid };
}

async function startSubject(
  name: string,
  store: StoreEnvironment,
  cores: Cores,
  generator: Generator,
): Promise<Subject> {
  const managementKey = await bootstrap(store);
  const server = await startLatchkey(store, cores.server);
  return { name, server, store, keys: await seed(server, generator, managementKey) };
}
