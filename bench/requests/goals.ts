import type { Goal } from "../goals.js";
import type { Sample } from "../measure.js";
import type { Round } from "./results.js";
import { batchSize, type ScenarioName, scenarios } from "./scenarios.js";
import type { TrialName } from "./trials.js";

/** What the requests have to say about the goals. */
export function goalsOfRequests(rounds: readonly Round[]): Goal[] {
  /** One figure of a trial in each round, over the same figure of another one. */
  function ratios(own: TrialName, other: TrialName, figure: keyof Sample): number[] {
    return rounds.map(
      (round) =>
        (round.get(own)?.[figure] ?? Number.NaN) / (round.get(other)?.[figure] ?? Number.NaN),
    );
  }

  function cpuAtMost(
    scenario: ScenarioName,
    atMost: number,
    rival: TrialName,
    rivalName: string,
  ): Goal {
    return {
      path: scenarios[scenario].name,
      promise: `≤ ${atMost.toFixed(1)} × ${rivalName}`,
      limit: { atMost },
      figures: ratios(`embedded/${scenario}`, rival, "cpu"),
    };
  }

  function decisionsAtLeast(scenario: ScenarioName, atLeast: number, checks: number): Goal {
    return {
      path: scenarios[scenario].name,
      promise: `≥ ${atLeast} × the decisions per CPU second of unary checks`,
      limit: { atLeast },
      figures: ratios("embedded/checkOverGrpc", `embedded/${scenario}`, "cpu").map(
        (ratio) => ratio * checks,
      ),
      digits: 1,
    };
  }

  const bare = "bare node:http";
  const grpcJs = "@grpc/grpc-js";
  const floor = "minimal node:http + lmdb";
  return [
    cpuAtMost("readByKey", 1.9, "bare/readByKey", bare),
    cpuAtMost("readByKeyOverGrpc", 1, "grpcJs/readByKeyOverGrpc", grpcJs),
    cpuAtMost("checkOverGrpc", 1, "grpcJs/checkOverGrpc", grpcJs),
    cpuAtMost("readByKeyOverConnect", 2.5, "bare/readByKeyOverConnect", bare),
    cpuAtMost("readByKeyOverGrpcWeb", 2.5, "bare/readByKeyOverConnect", bare),
    decisionsAtLeast("batchOverGrpc", 25, batchSize),
    decisionsAtLeast("batchOfOneKeyOverGrpc", 25, batchSize),
    decisionsAtLeast("streamOverGrpc", 4, 1),
    cpuAtMost("createSession", 1.5, "lmdb/createSession", floor),
    cpuAtMost("authorizeSession", 1.5, "lmdb/authorizeSession", floor),
    cpuAtMost("createApplication", 1.5, "lmdb/createApplication", floor),
    {
      path: `MongoDB: ${scenarios.readByKeyOfMany.name}`,
      promise: "≥ 3 × the requests per second of one findOne per request",
      limit: { atLeast: 3 },
      figures: ratios("mongo/readByKeyOfMany", "findOne/readByKeyOfMany", "requestsPerSecond"),
    },
  ];
}
