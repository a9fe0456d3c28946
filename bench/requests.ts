import { factsOf } from "./facts.js";
import type { Generator } from "./load/generator.js";
import { measure, perPart, type Sample } from "./measure.js";
import type { Plan } from "./plan.js";
import type { Section } from "./report.js";
import { type Row, requestColumns, summarize } from "./results.js";
import { readByKey, scenarios } from "./scenarios.js";
import { addressOf, type Server, startBareServer } from "./servers.js";
import { type Stage, tell } from "./stage.js";
import type { Subject } from "./subjects.js";
import { tableOf } from "./table.js";

const bareName = "bare node:http";

/** What a request costs, beside a bare `node:http` server in the same run. */
export async function measureRequests(stage: Stage, plan: Plan): Promise<Section> {
  const { cores, generator, subjects } = stage;
  const bare = await startBareServer(await answerToRead(subjects[0]), cores.server);

  tell("requests: warming up");
  await runRound(bare, subjects, generator, plan.warmUp);
  const rounds: Sample[][] = [];
  while (rounds.length < plan.rounds) {
    tell(`requests: round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(bare, subjects, generator, plan.seconds));
  }

  return {
    name: "requests",
    table: tableOf(requestColumns, summarize(rowsOf(subjects), rounds)),
    facts: await factsOf(stage, plan, [{ name: bareName, server: bare }, ...subjects]),
  };
}

/** One load after the other, so that a noisy minute of the machine touches all rows alike. */
async function runRound(
  bare: Server,
  subjects: readonly [Subject, ...Subject[]],
  generator: Generator,
  seconds: number,
): Promise<Sample[]> {
  const bareLoad = readByKey.load(bare.port, subjects[0].keys, seconds, []);
  const samples = [(await measure(bare, generator, bareLoad)).sample];
  for (const { server, keys } of subjects) {
    let answers: readonly string[] = [];
    for (const { load, parts } of scenarios) {
      const measured = await measure(server, generator, load(server.port, keys, seconds, answers));
      answers = measured.answers;
      samples.push(measured.sample);
      if (parts) {
        samples.push(perPart(measured.sample, parts.count));
      }
    }
  }
  return samples;
}

/** In the order of the samples of a round. */
function rowsOf(subjects: readonly Subject[]): Row[] {
  const requests = scenarios.flatMap(({ name, parts }) => (parts ? [name, parts.name] : [name]));
  return [
    { server: bareName, request: readByKey.name },
    ...subjects.flatMap(({ name }) => requests.map((request) => ({ server: name, request }))),
  ];
}

/** What Latchkey answers to a read, for the bare server to repeat. */
async function answerToRead({ server, keys }: Subject): Promise<string> {
  const response = await fetch(`${addressOf(server)}/applications/key`, {
    headers: { "SVC-API-KEY": keys.private[0] as string },
  });
  if (response.status !== 200) {
    throw new Error(`GET /applications/key answered ${response.status}`);
  }
  return response.text();
}
