import { join } from "node:path";
import { type BenchContext, reportProgress } from "../context.js";
import type { Plan } from "../plan.js";
import { type Estimate, estimate, ratio } from "../report/estimate.js";
import type { SuiteResult } from "../report/report.js";
import { type Column, createTable, format, formatEstimate } from "../report/table.js";
import { measure, type Sample } from "../rounds.js";
import { scenarios } from "../scenarios.js";
import { seed } from "../seed.js";
import { startLatchkey } from "../servers.js";

/** New sessions per second. */
const rate = 1_500;
/** Seconds until a session expires, and from then until its record is removed. */
const lifetime = 180;
const retention = 600;

const phases = ["before the first expires", "sessions expire", "and are removed"] as const;
type Phase = (typeof phases)[number];

/** Measures latency while as many sessions are opened as expire and are removed. */
export async function measureExpiry(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { speed, seconds, loads } = plan.expiry;
  const { folder, cores, generator } = context;
  const store = { DATA_DIR: join(folder, "expiry"), SESSION_TTL: `${lifetime}s` };
  const keys = await seed(store, { cores: cores.server }, generator, 1);
  const server = await startLatchkey(store, {
    cores: cores.server,
    nodeOptions: ["--import", createFastClock(speed)],
  });
  const load = {
    ...scenarios.createSession.load({ server, keys }, []),
    keepResponses: false,
    rate,
  };
  const samples = new Map<Phase, Sample[]>(phases.map((phase) => [phase, []]));
  await measure(generator, server, load, plan.warmup);
  // Sessions of the warmup would expire first.
  const started = performance.now() - plan.warmup * 1_000;
  const age = () => ((performance.now() - started) / 1_000) * speed;
  const end = lifetime + retention + loads * seconds * speed;
  while (age() < end) {
    const from = age();
    const { sample } = await measure(generator, server, load, seconds);
    const phase = phaseOf(from, age());
    reportProgress(`expiry: ${phase ?? "between two phases"}`);
    samples.get(phase as Phase)?.push(sample);
  }
  await server.stop();
  const p99 = (phase: Phase) => latencyOf(samples, phase, "p99");
  return {
    section: {
      name: "expiry",
      table: createTable(createColumns(samples), phases),
      notes: [
        `${scenarios.createSession.name}, ${format(rate, 0)} per second, on the embedded store.`,
        `Lowest (median) of loads of ${seconds} s. The clock of the service ran ${speed} times as fast, so that sessions of ${lifetime} s expired after ${lifetime / speed} s and were removed ${retention / speed} s later.`,
      ],
    },
    measured: { expiryP99: ratio(p99("and are removed"), p99("before the first expires")) },
  };
}

/** The phase that a load ran in, from one age of the oldest session to another. */
function phaseOf(from: number, to: number): Phase | undefined {
  if (to < lifetime) {
    return "before the first expires";
  }
  if (from >= lifetime + retention) {
    return "and are removed";
  }
  return from >= lifetime && to < lifetime + retention ? "sessions expire" : undefined;
}

type Phases = ReadonlyMap<Phase, readonly Sample[]>;

function latencyOf(samples: Phases, phase: Phase, latency: "p50" | "p99"): Estimate {
  return estimate((samples.get(phase) ?? []).map((sample) => sample[latency]));
}

function createColumns(samples: Phases): readonly Column<Phase>[] {
  const cpu = (phase: Phase) => estimate((samples.get(phase) ?? []).map((sample) => sample.cpu));
  return [
    { title: "Phase", isText: true, text: (phase) => phase },
    { title: "p50 ms", text: (phase) => formatEstimate(latencyOf(samples, phase, "p50"), 2) },
    { title: "p99 ms", text: (phase) => formatEstimate(latencyOf(samples, phase, "p99"), 2) },
    { title: "CPU µs per session", text: (phase) => formatEstimate(cpu(phase), 0) },
  ];
}

/** A module that makes the time of day pass faster. Timers keep their speed. */
function createFastClock(speed: number): string {
  const module = `const now = Date.now, start = now(); Date.now = () => Math.floor(start + (now() - start) * ${speed});`;
  return `data:text/javascript,${encodeURIComponent(module)}`;
}
