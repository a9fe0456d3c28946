import type { ServerName, ServersUnderTest, ServerUnderTest } from "../../baselines/start.js";
import { isSelected, type Plan } from "../../plan.js";
import type { Contender } from "../../rounds.js";
import { type Scenario, type ScenarioName, scenarios } from "../../scenarios.js";

/** One scenario on one server. */
export interface BenchCase extends Contender {
  /** The name of the server. */
  readonly label: string;
  readonly scenario: Scenario;
}

export type CaseName = `${ServerName}/${ScenarioName}`;

/** Cases that are compared are adjacent, so that noise on the machine affects all of them. */
const casesWithGoals: readonly CaseName[] = [
  "bare/readByKey",
  "byHand/readByKey",
  "embedded/readByKey",
  "byHand/checkOverRest",
  "embedded/checkOverRest",
  "embedded/forwardAuth",
  "embedded/checkOverGrpc",
  "embedded/extAuthz",
  "embedded/batchOverGrpc",
  "byHand/createSession",
  "embedded/createSession",
  "byHand/authorizeSession",
  "embedded/authorizeSession",
  "byHand/createApplication",
  "embedded/createApplication",
  "byHandOnMongo/readByKey",
  "mongo/readByKey",
  "byHandOnMongo/checkOverRest",
  "mongo/checkOverRest",
  "byHandOnMongo/createSession",
  "mongo/createSession",
  "byHandOnMongo/authorizeSession",
  "mongo/authorizeSession",
  "byHandOnMongo/createApplication",
  "mongo/createApplication",
];

const otherCases: readonly CaseName[] = [
  "embedded/readByKeyOverHttp2",
  "embedded/readByKeyOverConnect",
  "embedded/readByKeyOverGrpcWeb",
  "embedded/readByKeyOverGrpc",
  "embedded/batchSingleKeyOverGrpc",
  "embedded/batchOverRest",
  "embedded/streamOverGrpc",
  "embedded/updateApplication",
  "embedded/listApplications",
  "mongo/readByKeyOverHttp2",
  "mongo/readByKeyOverConnect",
  "mongo/readByKeyOverGrpcWeb",
  "mongo/readByKeyOverGrpc",
  "mongo/checkOverGrpc",
  "mongo/extAuthz",
  "mongo/forwardAuth",
  "mongo/batchOverRest",
  "mongo/batchOverGrpc",
  "mongo/streamOverGrpc",
  "mongo/updateApplication",
  "mongo/listApplications",
];

/** Selects the cases whose server is available. */
export function selectCases(
  servers: ServersUnderTest,
  plan: Plan,
): ReadonlyMap<CaseName, BenchCase> {
  const names = plan.isFull ? [...casesWithGoals, ...otherCases] : casesWithGoals;
  return new Map(
    names.flatMap((name) => {
      const [serverName, scenarioName] = name.split("/") as [ServerName, ScenarioName];
      const target = servers[serverName];
      return target && isSelected(plan, name)
        ? [[name, createCase(target, scenarios[scenarioName])] as const]
        : [];
    }),
  );
}

function createCase(target: ServerUnderTest, scenario: Scenario): BenchCase {
  const { label, server } = target;
  return { label, scenario, server, load: (previous) => scenario.load(target, previous) };
}
