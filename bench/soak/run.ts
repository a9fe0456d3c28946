/**
 * The soak test: runs mixed traffic at half of the highest load and monitors the
 * memory and open files of all processes.
 *
 *     npm run soak                        30 minutes, on the embedded store
 *     npm run soak -- --minutes 6         shorter
 *     npm run soak -- --mongodb           on a temporary MongoDB
 *     npm run soak -- --workers 2         with several processes
 *
 * Exits with 1 if a request fails, times out or returns a wrong response, if a
 * process exits, if memory or open files keep growing, or if a flood of large
 * invalid requests makes another caller wait too long.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startMongod } from "../../test/support/mongo/mongod.js";
import { cleanUp, createTempFolder, onExit, waitForInterrupt } from "../child-processes.js";
import { startGenerator } from "../load/generator.js";
import { seed } from "../seed.js";
import { addressOf, type StoreEnvironment, startLatchkey } from "../servers.js";
import { createJourneys } from "./journeys.js";
import { findMaxRate, measureDuringFlood, runAtRate } from "./load.js";
import { createRecorder, monitor } from "./recorder.js";
import { findFailures, formatReport } from "./report.js";

/** Applications that no journey changes. */
const seededApplications = 1_000;
const maxRateSeconds = 15;
const floodSeconds = 20;

function reportProgress(progress: string): void {
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
  const store = values.mongodb
    ? await startDatabase()
    : { DATA_DIR: join(await createTempFolder(), "data") };
  reportProgress("filling the store");
  const keys = await seed(store, { cores: undefined }, startGenerator(), seededApplications);
  // A short retention of audit entries, so that the data stop growing.
  const environment = { ...store, EVENT_RETENTION: "2m" };
  const workers = Number(values.workers);
  const server = await startLatchkey(environment, { cores: undefined, workers });
  const url = addressOf(server);
  const recorder = createRecorder();
  const journeys = createJourneys(url, keys, recorder);

  reportProgress(`finding the highest load for ${maxRateSeconds} seconds`);
  await findMaxRate(journeys, maxRateSeconds / 3);
  const highest = await findMaxRate(journeys, maxRateSeconds);
  recorder.latencies.clear();
  const rate = highest / 2;
  reportProgress(
    `running half of it, ${Math.round(rate)} journeys per second, for ${minutes} minutes`,
  );
  const load = runAtRate(journeys, rate, minutes * 60);
  const samples = await monitor(load, server.pid);
  journeys.close();
  reportProgress(`sending large invalid requests for ${floodSeconds} seconds`);
  const flood = await measureDuringFlood(url, keys, floodSeconds);

  const result = { minutes, rate, recorder, samples, flood };
  console.log(formatReport(result));
  const failures = findFailures(result);
  if (failures.length > 0) {
    throw new Error(failures.join("\n"));
  }
}

async function startDatabase(): Promise<StoreEnvironment> {
  const mongod = await startMongod();
  onExit(() => mongod.stop());
  return { MONGODB_URI: mongod.uri, MONGODB_DATABASE: "latchkey" };
}

try {
  await Promise.race([main(), waitForInterrupt()]);
} catch (error) {
  console.error(`soak: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
  process.exit();
}
