import type { BenchContext } from "../context.js";
import type { Plan } from "../plan.js";
import { combine, type Estimate } from "../report/estimate.js";
import type { SuiteResult } from "../report/report.js";
import { type Column, createTable, formatEstimate } from "../report/table.js";
import { type Contender, estimateCpu, runRounds } from "../rounds.js";
import { type Scenario, scenarios } from "../scenarios.js";
import { startLatchkey } from "../servers.js";

interface Outcome {
  readonly scenario: Scenario;
  /** CPU µs of all processes per request. */
  readonly one: Estimate;
  readonly two: Estimate;
}

const columns: readonly Column<Outcome>[] = [
  { title: "Request", isText: true, text: ({ scenario }) => scenario.name },
  { title: "CPU µs, WORKERS=1", text: ({ one }) => formatEstimate(one, 0) },
  { title: "CPU µs, WORKERS=2", text: ({ two }) => formatEstimate(two, 0) },
  { title: "Requests of two ÷ one", text: (outcome) => formatEstimate(getGain(outcome), 2) },
];

const measuredScenarios = { read: scenarios.readByKey, write: scenarios.createSession };
type Case = `${"one" | "two"}/${keyof typeof measuredScenarios}`;

/**
 * Compares one worker with two. Two workers and the load generator would need
 * three cores, so the gain is calculated from the CPU time of all processes.
 */
export async function measureWorkers(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { embedded, cores } = context;
  const one = await startLatchkey(embedded.store, { cores: cores.server, workers: 1 });
  const two = await startLatchkey(embedded.store, { cores: cores.workers, workers: 2 });
  const contender = (server: typeof one, { load }: Scenario): Contender => ({
    server,
    load: (previous) => load({ server, keys: embedded.keys }, previous),
  });
  const { read, write } = measuredScenarios;
  const contenders = new Map<Case, Contender>([
    ["one/read", contender(one, read)],
    ["two/read", contender(two, read)],
    ["one/write", contender(one, write)],
    ["two/write", contender(two, write)],
  ]);
  const samples = await runRounds("workers", contenders, context, {
    ...plan,
    // Each of two workers gets only half of the warmup requests.
    warmup: 2 * plan.warmup,
  });
  await one.stop();
  await two.stop();
  const outcome = (name: keyof typeof measuredScenarios): Outcome => ({
    scenario: measuredScenarios[name],
    one: estimateCpu(samples, `one/${name}`),
    two: estimateCpu(samples, `two/${name}`),
  });
  return {
    section: {
      name: "workers",
      isConsoleOnly: true,
      table: createTable(columns, [outcome("read"), outcome("write")]),
      notes: [
        `Lowest (median) of ${plan.rounds} rounds of ${plan.seconds} s. CPU time of all processes of the service.`,
        ...(cores.server === undefined
          ? []
          : [`One worker on core ${cores.server}, two workers on core ${cores.workers}.`]),
      ],
    },
    measured: { twoWorkers: getGain(outcome("read")) },
  };
}

/** The requests that two workers on two cores have CPU time for, relative to one. */
function getGain({ one, two }: Outcome): Estimate {
  return combine(one, two, (a, b) => (2 * a) / b);
}
