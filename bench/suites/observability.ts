import { type BenchContext, reportProgress } from "../context.js";
import type { Plan } from "../plan.js";
import { type Estimate, estimate, ratio } from "../report/estimate.js";
import type { SuiteResult } from "../report/report.js";
import { type Column, createTable, formatEstimate } from "../report/table.js";
import { type Contender, runRounds, type Sample } from "../rounds.js";
import { scenarios } from "../scenarios.js";
import { addressOf, type Server, startLatchkey } from "../servers.js";

/** One call in this many is traced. */
const callsPerTrace = 100;

const requests = { read: scenarios.readByKey, check: scenarios.checkOverGrpc };
type Request = keyof typeof requests;
const modes = ["disabled", "default", "traced"] as const;
type Mode = (typeof modes)[number];
type Case = `${Mode}/${Request}`;

interface Outcome {
  readonly name: string;
  /** CPU µs per request. */
  readonly cpu: Readonly<Record<Mode, Estimate>>;
}

const columns: readonly Column<Outcome>[] = [
  { title: "Request", isText: true, text: ({ name }) => name },
  { title: "CPU µs, all off", text: ({ cpu }) => formatEstimate(cpu.disabled, 0) },
  { title: "CPU µs, defaults", text: ({ cpu }) => formatEstimate(cpu.default, 0) },
  { title: "Ratio", text: ({ cpu }) => formatEstimate(ratio(cpu.default, cpu.disabled), 2) },
  {
    title: "Ratio with tracing",
    text: ({ cpu }) => formatEstimate(ratio(cpu.traced, cpu.disabled), 2),
  },
];

/** Measures the cost of metrics, logs and spans, compared with a service that has all of them off. */
export async function measureObservability(
  context: BenchContext,
  plan: Plan,
): Promise<SuiteResult> {
  const processes = plan.observabilityProcesses;
  const samples = new Map<Case, Sample[]>();
  for (let process = 1; process <= processes; process++) {
    reportProgress(`observability: processes ${process} of ${processes}`);
    for (const [name, added] of await measureNewProcesses(context, plan)) {
      samples.set(name, [...(samples.get(name) ?? []), ...added]);
    }
  }
  const outcome = (request: Request): Outcome => {
    const cpu = (mode: Mode) =>
      estimate((samples.get(`${mode}/${request}`) ?? []).map((sample) => sample.cpu));
    return {
      name: requests[request].name,
      cpu: { disabled: cpu("disabled"), default: cpu("default"), traced: cpu("traced") },
    };
  };
  const [read, check] = [outcome("read"), outcome("check")];
  return {
    section: {
      name: "observability",
      table: createTable(columns, [read, check]),
      notes: [
        "All off: `METRICS=off` and `LOG_LEVEL=silent`. Defaults: metrics, scraped once, and the log.",
        `With tracing: \`examples/telemetry.mjs\` is loaded and samples one call in ${callsPerTrace}.`,
        `Lowest (median) of ${plan.rounds} rounds of ${plan.seconds} s, spread over ${processes} processes.`,
      ],
    },
    measured: {
      observedRead: ratio(read.cpu.default, read.cpu.disabled),
      observedCheck: ratio(check.cpu.default, check.cpu.disabled),
    },
  };
}

async function measureNewProcesses(context: BenchContext, plan: Plan) {
  const { keys } = context.embedded;
  const servers = await startAll(context);
  const contenders = new Map<Case, Contender>();
  for (const [request, { load }] of Object.entries(requests)) {
    for (const mode of modes) {
      const server = servers[mode];
      contenders.set(`${mode}/${request as Request}`, {
        server,
        load: () => load({ server, keys }, []),
      });
    }
  }
  const rounds = Math.ceil(plan.rounds / plan.observabilityProcesses);
  const samples = await runRounds("observability", contenders, context, { ...plan, rounds });
  await Promise.all(modes.map((mode) => servers[mode].stop()));
  return samples;
}

async function startAll({ embedded, cores }: BenchContext): Promise<Record<Mode, Server>> {
  const start = (settings: Readonly<Record<string, string>>, nodeOptions: string[] = []) =>
    startLatchkey({ ...embedded.store, ...settings }, { cores: cores.server, nodeOptions });
  const sampled = {
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: String(1 / callsPerTrace),
  };
  const servers = {
    disabled: await start({ METRICS: "off", LOG_LEVEL: "silent" }),
    default: await start({}),
    traced: await start(sampled, ["--import", "./examples/telemetry.mjs"]),
  };
  // Some metrics are collected only after the first scrape.
  for (const server of [servers.default, servers.traced]) {
    await (await fetch(`${addressOf(server)}/metrics`)).text();
  }
  return servers;
}
