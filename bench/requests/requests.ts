import type { Findings } from "../findings.js";
import type { Generator } from "../load/generator.js";
import { measure, type Sample } from "../measure.js";
import type { Plan } from "../plan.js";
import type { Server } from "../servers.js";
import { type Stage, tell } from "../stage.js";
import { tableOf } from "../table.js";
import { factsOf } from "./facts.js";
import { goalsOfRequests } from "./goals.js";
import { startParticipants } from "./participants.js";
import {
  comparisonColumns,
  comparisonsOf,
  costColumns,
  costsOf,
  type Round,
  requestColumns,
  summarize,
} from "./results.js";
import { type Trial, type TrialName, trialsOf } from "./trials.js";

/** Measures what a request costs, and what it costs servers that do less, in the same run. */
export async function measureRequests(stage: Stage, plan: Plan): Promise<Findings> {
  const { generator } = stage;
  const trials = trialsOf(await startParticipants(stage), plan.isWhole);

  tell("requests: warming up");
  await runRound(trials, generator, plan.warmUp);
  const rounds: Round[] = [];
  while (rounds.length < plan.rounds) {
    tell(`requests: round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(trials, generator, plan.seconds));
  }
  return {
    section: {
      name: "requests",
      table: tableOf(requestColumns, summarize(trials, rounds)),
      pageTables: [
        tableOf(costColumns, costsOf(rounds)),
        tableOf(comparisonColumns, comparisonsOf(trials, rounds)),
      ],
      facts: await factsOf(stage, plan),
    },
    goals: goalsOfRequests(rounds),
  };
}

/** One load after the other, so that a noisy minute of the machine touches all rows alike. */
async function runRound(
  trials: readonly Trial[],
  generator: Generator,
  seconds: number,
): Promise<Round> {
  const round = new Map<TrialName, Sample>();
  const kept = new Map<Server, readonly string[]>();
  for (const { name, participant, load } of trials) {
    const { server, label } = participant;
    try {
      const asked = load(seconds, kept.get(server) ?? []);
      await generator.prove(asked);
      const { sample, answers } = await measure(server, generator, asked);
      kept.set(server, answers);
      round.set(name, sample);
    } catch (error) {
      throw new Error(`${label}: ${(error as Error).message}`);
    }
  }
  return round;
}
