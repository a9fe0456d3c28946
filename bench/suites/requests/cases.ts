import type { ServerName, ServersUnderTest, ServerUnderTest } from "../../baselines/start.js";
import type { Load } from "../../load/load.js";
import { type Scenario, type ScenarioName, scenarios } from "../../scenarios.js";

/** One scenario on one server. */
export interface BenchCase {
  readonly name: CaseName;
  readonly scenario: Scenario;
  readonly target: ServerUnderTest;
  load(seconds: number, previousResponses: readonly string[]): Load;
}

export type CaseName = `${ServerName}/${ScenarioName}`;

/** Cases that are compared are adjacent, so that noise on the machine affects all of them. */
const casesWithGoals: readonly CaseName[] = [
  "bare/readByKey",
  "lmdb/readByKey",
  "embedded/readByKey",
  "bare/readByKeyOverConnect",
  "embedded/readByKeyOverConnect",
  "embedded/readByKeyOverGrpcWeb",
  "minimalGrpc/readByKeyOverGrpc",
  "grpcJs/readByKeyOverGrpc",
  "embedded/readByKeyOverGrpc",
  "grpcJs/checkOverGrpc",
  "embedded/checkOverGrpc",
  "embedded/batchOverGrpc",
  "embedded/batchSingleKeyOverGrpc",
  "embedded/streamOverGrpc",
  "lmdb/createSession",
  "embedded/createSession",
  "lmdb/authorizeSession",
  "embedded/authorizeSession",
  "lmdb/createApplication",
  "embedded/createApplication",
  "findOne/readByKeyManyConnections",
  "mongo/readByKeyManyConnections",
];

const otherCases: readonly CaseName[] = [
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
  "mongo/batchOverGrpc",
  "mongo/streamOverGrpc",
  "mongo/checkOverRest",
  "mongo/batchOverRest",
  "mongo/createSession",
  "mongo/authorizeSession",
  "mongo/createApplication",
];

/** Selects the cases whose server is available. */
export function selectCases(servers: ServersUnderTest, isFull: boolean): BenchCase[] {
  const names = isFull ? [...casesWithGoals, ...otherCases] : casesWithGoals;
  return names.flatMap((name) => {
    const [serverName, scenarioName] = name.split("/") as [ServerName, ScenarioName];
    const target = servers[serverName];
    return target ? [createCase(name, target, scenarios[scenarioName])] : [];
  });
}

function createCase(name: CaseName, target: ServerUnderTest, scenario: Scenario): BenchCase {
  const { server, keys } = target;
  return {
    name,
    scenario,
    target,
    load: (seconds, previousResponses) =>
      scenario.load({ port: server.port, keys, seconds }, previousResponses),
  };
}
