import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll } from "@jest/globals";
import { allOrUndo } from "../../support/concurrency.js";
import { uri } from "../../support/mongo/uri.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { type ServiceProcess, startService } from "../../support/service/service-process.js";

const minute = 60_000;

const kill = ({ process }: ServiceProcess) => void process.child.kill("SIGKILL");

interface SkewedInstance extends ServiceProcess {
  readonly name: string;
}

const skews = { "5 minutes ahead": 5 * minute, "5 minutes behind": -5 * minute };
// As a URL, since NODE_OPTIONS is split at spaces.
const preload = `--import=${pathToFileURL(join(__dirname, "skew-clock.mjs"))}`;

/** Starts instances with wrong clocks on one database before the tests of a file, and kills them afterwards. */
export function useSkewedInstances(
  database: () => string,
  environment: Readonly<Record<string, string>>,
): readonly SkewedInstance[] {
  const instances: SkewedInstance[] = [];

  beforeAll(async () => {
    const store = { MONGODB_URI: uri, MONGODB_DATABASE: database() };
    const starting = Object.entries(skews).map(async ([name, skew]) => {
      const clock = { NODE_OPTIONS: preload, CLOCK_SKEW: String(skew) };
      const all = { ...rateLimitsOff, ...environment, ...store, ...clock };
      return { name, ...(await startService(all)) };
    });
    instances.push(...(await allOrUndo(starting, kill)));
  });

  afterAll(() => {
    instances.forEach(kill);
  });

  return instances;
}
