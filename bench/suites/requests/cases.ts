import type { Participant, Participants, Who } from "../../baselines/start.js";
import type { Load } from "../../load/load.js";
import { type Scenario, type ScenarioName, scenarios } from "../../scenarios.js";

/** One kind of request to one server. */
export interface Trial {
  readonly name: TrialName;
  readonly scenario: Scenario;
  readonly participant: Participant;
  load(seconds: number, keptAnswers: readonly string[]): Load;
}

/** Who gets which requests. */
export type TrialName = `${Who}/${ScenarioName}`;

/** What is compared stands together, so that a noisy minute of the machine touches all of it. */
const judged: readonly TrialName[] = [
  "bare/readByKey",
  "lmdb/readByKey",
  "embedded/readByKey",
  "bare/readByKeyOverConnect",
  "embedded/readByKeyOverConnect",
  "embedded/readByKeyOverGrpcWeb",
  "byHand/readByKeyOverGrpc",
  "grpcJs/readByKeyOverGrpc",
  "embedded/readByKeyOverGrpc",
  "grpcJs/checkOverGrpc",
  "embedded/checkOverGrpc",
  "embedded/batchOverGrpc",
  "embedded/batchOfOneKeyOverGrpc",
  "embedded/streamOverGrpc",
  "lmdb/createSession",
  "embedded/createSession",
  "lmdb/authorizeSession",
  "embedded/authorizeSession",
  "lmdb/createApplication",
  "embedded/createApplication",
  "findOne/readByKeyOfMany",
  "mongo/readByKeyOfMany",
];

/** What no goal is about. */
const shown: readonly TrialName[] = [
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

/** Those of which the server is there. */
export function trialsOf(participants: Participants, isWhole: boolean): Trial[] {
  const names = isWhole ? [...judged, ...shown] : judged;
  return names.flatMap((name) => {
    const [who, what] = name.split("/") as [Who, ScenarioName];
    const participant = participants[who];
    return participant ? [trialOf(name, participant, scenarios[what])] : [];
  });
}

function trialOf(name: TrialName, participant: Participant, scenario: Scenario): Trial {
  const { server, keys } = participant;
  return {
    name,
    scenario,
    participant,
    load: (seconds, keptAnswers) =>
      scenario.load({ port: server.port, keys, seconds }, keptAnswers),
  };
}
