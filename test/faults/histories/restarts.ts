import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { bootstrapKey } from "../../support/service/service-process.js";
import { createCallRecorder } from "../support/call-recorder.js";
import { endpointsOf } from "../support/cluster.js";
import { type Instance, startInstance } from "../support/instance.js";
import { createRandom } from "../support/random.js";
import { runHistories } from "./run.js";

interface RestartOptions {
  /** The environment variables of the store. */
  readonly store: Readonly<Record<string, string>>;
  /** The numbers of the instances that are killed together, time by time. */
  readonly kills: Kills;
  /** The number of calls before, between and after the kills. */
  readonly calls: number;
}

type Kills = readonly (readonly (0 | 1)[])[];

/** One after the other, then both. */
export const killsOfRound: Kills = [[0], [1], [0, 1]];

/** Kills and restarts two instances on a store under load, and returns the violations. */
export async function checkRestarts({
  store,
  kills,
  calls,
}: RestartOptions): Promise<readonly string[]> {
  const root = await bootstrapKey(store);
  const settings = { ...rateLimitsOff, SESSION_TTL: "1h", ...store };
  const instances: Instance[] = [];
  for (const name of ["first", "second"]) {
    instances.push(await startInstance(name, settings));
  }
  const recorder = createCallRecorder();
  const endpoints = endpointsOf(instances);
  const restart = (killed: readonly Instance[]) => ({
    name: `kill -9 of ${killed.map(({ name }) => name).join(" and ")}`,
    async inject() {
      await Promise.all(killed.map((instance) => instance.kill()));
      await Promise.all(killed.map((instance) => instance.start()));
    },
  });
  try {
    const violations = await runHistories({
      recorder,
      endpoints,
      root,
      random: createRandom(5),
      calls,
      disturbances: kills.map((numbers) => restart(numbers.map((at) => instances[at] as Instance))),
    });
    const { outcomes } = recorder;
    const lost = outcomes.filter(({ result }) => result === "lost").length;
    console.info(`${outcomes.length} calls, ${lost} of them without a response`);
    return violations;
  } finally {
    for (const { api } of endpoints) {
      api.close();
    }
    await Promise.all(instances.map((instance) => instance.kill()));
  }
}
