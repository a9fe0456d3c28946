import type { ServerName, ServersUnderTest, ServerUnderTest } from "../../baselines/start.js";
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
  "lmdb/readByKey",
  "embedded/readByKey",
  "embedded/forwardAuth",
  "bare/readByKeyOverConnect",
  "embedded/readByKeyOverConnect",
  "embedded/readByKeyOverGrpcWeb",
  "minimalGrpc/readByKeyOverGrpc",
  "grpcJs/readByKeyOverGrpc",
  "embedded/readByKeyOverGrpc",
  "grpcJs/checkOverGrpc",
  "embedded/checkOverGrpc",
  "embedded/extAuthz",
  "embedded/batchOverGrpc",
  "embedded/streamOverGrpc",
  "lmdb/createSession",
  "embedded/createSession",
  "lmdb/authorizeSession",
  "embedded/authorizeSession",
  "lmdb/createApplication",
  "embedded/createApplication",
  "findOne/readByKeyManyConnections",
  "mongo/readByKeyManyConnections",
  "mongo/createSession",
];

const otherCases: readonly CaseName[] = [
  "embedded/batchSingleKeyOverGrpc",
  "embedded/checkOverRest",
  "embedded/batchOverRest",
  "connectOverHttp1/readByKeyOverConnect",
  "connectOverHttp2/readByKeyOverGrpc",
  "bareHttp2/readByKeyOverHttp2",
  "embedded/readByKeyOverHttp2",
  "mongo/readByKey",
  "mongo/readByKeyOverConnect",
  "mongo/readByKeyOverGrpcWeb",
  "mongo/readByKeyOverHttp2",
  "mongo/readByKeyOverGrpc",
  "mongo/checkOverGrpc",
  "mongo/extAuthz",
  "mongo/forwardAuth",
  "mongo/batchOverGrpc",
  "mongo/streamOverGrpc",
  "mongo/checkOverRest",
  "mongo/batchOverRest",
  "mongo/authorizeSession",
  "mongo/createApplication",
];

/** Selects the cases whose server is available. */
export function selectCases(
  servers: ServersUnderTest,
  isFull: boolean,
): ReadonlyMap<CaseName, BenchCase> {
  const names = isFull ? [...casesWithGoals, ...otherCases] : casesWithGoals;
  return new Map(
    names.flatMap((name) => {
      const [serverName, scenarioName] = name.split("/") as [ServerName, ScenarioName];
      const target = servers[serverName];
      return target ? [[name, createCase(target, scenarios[scenarioName])] as const] : [];
    }),
  );
}

function createCase(target: ServerUnderTest, scenario: Scenario): BenchCase {
  const { label, server } = target;
  return { label, scenario, server, load: (previous) => scenario.load(target, previous) };
}
