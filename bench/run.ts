/**
 * What a request costs, beside a bare `node:http` server in the same run.
 *
 *     npm run bench              about 4 minutes, writes docs/performance.md
 *     npm run bench -- --quick   under a minute, only prints
 */
import { parseArgs } from "node:util";
import { cleanUp, interruption, scratchFolder } from "./cleanup.js";
import { chooseCores } from "./cores.js";
import { factsOf } from "./facts.js";
import { type Generator, startGenerator } from "./load/generator.js";
import { measure, type Sample } from "./measure.js";
import { type Report, toText, writePage } from "./report.js";
import { type Row, summarize } from "./results.js";
import { readByKey, scenarios } from "./scenarios.js";
import { type Server, startBareServer } from "./servers.js";
import { type Subject, startOnEmbeddedStore, startOnMongo } from "./subjects.js";

interface Plan {
  /** How long each load is tried first: code that has not run a few thousand times is not compiled yet. */
  readonly warmUp: number;
  readonly rounds: number;
  /** How long each load of a round takes. */
  readonly seconds: number;
}

const wholePlan: Plan = { warmUp: 3, rounds: 7, seconds: 2 };
const quickPlan: Plan = { warmUp: 1, rounds: 2, seconds: 1 };
const bareName = "bare node:http";

async function main(): Promise<void> {
  const { quick } = parseArgs({ options: { quick: { type: "boolean" } } }).values;
  const report = await bench(quick ? quickPlan : wholePlan);
  console.log(toText(report));
  if (!quick) {
    await writePage(report);
  }
}

async function bench(plan: Plan): Promise<Report> {
  const cores = chooseCores();
  const folder = await scratchFolder();
  const generator = startGenerator(folder, cores.load);

  tell("starting the servers");
  const embedded = await startOnEmbeddedStore(folder, cores, generator);
  const mongo = await startOnMongo(cores, generator);
  const subjects = mongo ? [embedded, mongo] : [embedded];
  const bare = await startBareServer(await answerToRead(embedded), cores.server);

  tell("warming up");
  await runRound(bare, subjects, generator, plan.warmUp);
  const rounds: Sample[][] = [];
  while (rounds.length < plan.rounds) {
    tell(`round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(bare, subjects, generator, plan.seconds));
  }

  return {
    results: summarize(rowsOf(subjects), rounds),
    facts: await factsOf({
      rounds: plan.rounds,
      seconds: plan.seconds,
      cores,
      folder,
      load: generator.description,
      hasMongo: mongo !== undefined,
      servers: [{ name: bareName, server: bare }, ...subjects],
    }),
  };
}

/** One load after the other, so that a noisy minute of the machine touches all rows alike. */
async function runRound(
  bare: Server,
  subjects: readonly Subject[],
  generator: Generator,
  seconds: number,
): Promise<Sample[]> {
  const { keys } = subjects[0] as Subject;
  const samples: Sample[] = [];
  const bareLoad = readByKey.load(bare.port, keys, seconds, []);
  samples.push((await measure(bare, generator, bareLoad)).sample);
  for (const { server, keys } of subjects) {
    let answers: readonly string[] = [];
    for (const scenario of scenarios) {
      const load = scenario.load(server.port, keys, seconds, answers);
      const measured = await measure(server, generator, load);
      samples.push(measured.sample);
      answers = measured.answers;
    }
  }
  return samples;
}

/** In the order of the samples of a round. */
function rowsOf(subjects: readonly Subject[]): Row[] {
  return [
    { server: bareName, request: readByKey.name },
    ...subjects.flatMap(({ name }) =>
      scenarios.map((scenario) => ({ server: name, request: scenario.name })),
    ),
  ];
}

/** What Latchkey answers to a read, for the bare server to repeat. */
async function answerToRead({ server, keys }: Subject): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${server.port}/applications/key`, {
    headers: { "SVC-API-KEY": keys.private[0] as string },
  });
  if (response.status !== 200) {
    throw new Error(`GET /applications/key answered ${response.status}`);
  }
  return response.text();
}

function tell(progress: string): void {
  console.error(`bench: ${progress}`);
}

try {
  await Promise.race([main(), interruption()]);
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
  process.exit();
}
