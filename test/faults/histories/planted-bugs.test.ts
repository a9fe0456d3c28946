import { describe, expect, it } from "@jest/globals";
import { repetitions } from "../../support/jest/suite.js";
import { createCallRecorder } from "../support/call-recorder.js";
import { createRandom } from "../support/random.js";
import { runHistories } from "./run.js";
import { type Bug, bugs, createSimulatedService, simulatedRoot } from "./simulated-service.js";

const seeds = Array.from({ length: repetitions({ quick: 2, full: 20 }) }, (_, seed) => seed);
/** A mistake that shows rarely may need several runs. */
const maxRuns = 10;

/** Checks a simulated service that crashes twice. */
async function run(seed: number, bug?: Bug): Promise<readonly string[]> {
  const random = createRandom(seed);
  const { endpoints, crash } = createSimulatedService(random, bug);
  const disturbances = Array(2).fill({ name: "all instances crash", inject: crash });
  const recorder = createCallRecorder();
  const options = { recorder, endpoints, root: simulatedRoot, random, disturbances };
  return runHistories({ ...options, calls: 300 });
}

describe("the checker of histories", () => {
  it.each(seeds)(
    "accepts a correct service with lost responses and crashes, seed %i",
    async (seed) => {
      expect(await run(seed)).toEqual([]);
    },
  );

  it.each(bugs)("finds a service that %s", async (bug) => {
    let violations: readonly string[] = [];
    for (let seed = 0; violations.length === 0 && seed < maxRuns; seed++) {
      violations = await run(seed, bug);
    }
    expect(violations).not.toEqual([]);
  });
});
