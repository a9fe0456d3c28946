/**
 * Whether Latchkey holds under load that lasts: half of the highest that it
 * bears, of all kinds of requests at once, while the memory and the open files
 * of all its processes are watched.
 *
 *     npm run soak                        30 minutes, on the embedded store
 *     npm run soak -- --minutes 6         shorter
 *     npm run soak -- --mongodb           on a MongoDB of its own
 *     npm run soak -- --workers 2         with several processes
 *
 * Ends with an error where a request goes wrong, is answered late or with
 * something else than it should be, also while the highest load is found; where
 * a process dies; where memory or open files keep growing; and where, at last, a
 * caller waits for long beside many large requests that are not valid.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startMongod } from "../../test/support/mongo/mongod.js";
import { cleanUp, interruption, onExit, scratchFolder } from "../child-processes.js";
import { seed } from "../seed.js";
import { addressOf, type StoreEnvironment, startLatchkey } from "../servers.js";
import { createJourneys } from "./journeys.js";
import { callBesideInvalid, findHighest, keepRate } from "./load.js";
import { createRecord, watchDuring } from "./recorder.js";
import { faultsOf, report } from "./report.js";

/** How many applications there are that nobody changes. */
const residents = 1_000;
const trial = 15;
const invalidLoad = 20;

function tell(progress: string): void {
  console.error(`soak: ${progress}`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "30" },
      workers: { type: "string", default: "1" },
      mongodb: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) {
    throw new Error("--minutes must be a number above 0, for example 30");
  }
  const folder = join(await scratchFolder(), "data");
  const store = values.mongodb ? await startDatabase() : { DATA_DIR: folder };
  tell("filling the store");
  const keys = await seed(store, residents);
  // What happened is kept for a short while only, so that the data do not grow for as long as it lasts.
  const environment = { ...store, EVENT_RETENTION: "2m" };
  const workers = Number(values.workers);
  const server = await startLatchkey(environment, { cores: undefined, workers });
  const url = addressOf(server);
  const record = createRecord();
  const journeys = createJourneys(url, keys, record);

  tell(`finding the highest load for ${trial} seconds`);
  await findHighest(journeys, trial / 3);
  const highest = await findHighest(journeys, trial);
  record.latencies.clear();
  const rate = highest / 2;
  tell(`half of it, ${Math.round(rate)} journeys a second, for ${minutes} minutes`);
  const load = keepRate(journeys, rate, minutes * 60);
  const samples = await watchDuring(load, server.pid, folder);
  journeys.close();
  tell(`sending large requests that are not valid for ${invalidLoad} seconds`);
  const besideInvalid = await callBesideInvalid(url, keys, invalidLoad);

  const result = { minutes, rate, record, samples, besideInvalid };
  console.log(report(result));
  const faults = faultsOf(result);
  if (faults.length > 0) {
    throw new Error(faults.join("\n"));
  }
}

async function startDatabase(): Promise<StoreEnvironment> {
  const mongod = await startMongod();
  onExit(() => mongod.stop());
  return { MONGODB_URI: mongod.uri, MONGODB_DATABASE: "latchkey" };
}

try {
  await Promise.race([main(), interruption()]);
} catch (error) {
  console.error(`soak: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
  process.exit();
}
