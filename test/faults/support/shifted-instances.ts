import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll } from "@jest/globals";
import { allOrUndo } from "../../support/concurrency.js";
import { uri } from "../../support/mongo/uri.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { type ServiceProcess, startService } from "../../support/service/service-process.js";

const minute = 60_000;

const end = ({ process }: ServiceProcess) => void process.child.kill("SIGKILL");

/** One of several instances of the service on one database, whose clock is wrong. */
interface ShiftedInstance extends ServiceProcess {
  readonly name: string;
}

const shifts = { "5 minutes ahead": 5 * minute, "5 minutes behind": -5 * minute };
// As a URL, since NODE_OPTIONS is split at spaces.
const preload = `--import=${pathToFileURL(join(__dirname, "shift-clock.mjs"))}`;

/** Starts the instances before the tests of a file, as processes of their own, and ends them after. */
export function useShiftedInstances(
  database: () => string,
  environment: Readonly<Record<string, string>>,
): readonly ShiftedInstance[] {
  const instances: ShiftedInstance[] = [];

  beforeAll(async () => {
    const store = { MONGODB_URI: uri, MONGODB_DATABASE: database() };
    const started = Object.entries(shifts).map(async ([name, shift]) => {
      const clock = { NODE_OPTIONS: preload, CLOCK_SHIFT: String(shift) };
      const all = { ...rateLimitsOff, ...environment, ...store, ...clock };
      return { name, ...(await startService(all)) };
    });
    instances.push(...(await allOrUndo(started, end)));
  }, 180_000);

  afterAll(() => {
    instances.forEach(end);
  });

  return instances;
}
