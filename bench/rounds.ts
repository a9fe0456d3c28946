import { type BenchContext, reportProgress } from "./context.js";
import type { LoadGenerator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import type { Plan } from "./plan.js";
import { type Estimate, estimate } from "./report/estimate.js";
import type { Server } from "./servers.js";

/** A server and one kind of request to it. */
export interface Contender {
  readonly server: Server;
  /** Creates the load. Some need the responses that an earlier contender on the same server kept. */
  load(previousResponses: readonly string[]): Load;
}

/** What one round cost. */
export interface Sample {
  /** Microseconds of server CPU time per request. `NaN` if it cannot be measured. */
  readonly cpu: number;
  /** The same of the database. */
  readonly databaseCpu: number;
  readonly requestsPerSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** The samples of each contender, one per round. */
export type Samples<Name> = ReadonlyMap<Name, readonly Sample[]>;

/**
 * Runs the load of every contender once per round, after a warmup that lets the
 * JIT compile hot code. Many short rounds give each contender its share of the
 * moments in which nothing else uses the machine.
 */
export async function runRounds<Name>(
  suite: string,
  contenders: ReadonlyMap<Name, Contender>,
  { generator }: Pick<BenchContext, "generator">,
  { rounds, seconds, warmup }: Pick<Plan, "rounds" | "seconds" | "warmup">,
): Promise<Samples<Name>> {
  const samples = new Map([...contenders.keys()].map((name) => [name, [] as Sample[]]));
  for (let round = 0; round <= rounds; round++) {
    reportProgress(round === 0 ? `${suite}: warming up` : `${suite}: round ${round} of ${rounds}`);
    const previousResponses = new Map<Server, readonly string[]>();
    for (const [name, { server, load: createLoad }] of contenders) {
      const load = createLoad(previousResponses.get(server) ?? []);
      if (round === 0) {
        await generator.verify(server, load);
      }
      const { sample, responses } = await measure(
        generator,
        server,
        load,
        round === 0 ? warmup : seconds,
      );
      if (load.keepResponses) {
        previousResponses.set(server, responses);
      }
      if (round > 0) {
        samples.get(name)?.push(sample);
      }
    }
  }
  return samples;
}

export async function measure(
  generator: LoadGenerator,
  server: Server,
  load: Load,
  duration: number,
): Promise<{ readonly sample: Sample; readonly responses: readonly string[] }> {
  const result = await generator.run(server, load, duration);
  const { requests, seconds, p50, p99, responses } = result;
  const cpu = (result.cpuSeconds * 1_000_000) / requests;
  const databaseCpu = (result.databaseCpuSeconds * 1_000_000) / requests;
  const requestsPerSecond = requests / seconds;
  return { sample: { cpu, databaseCpu, requestsPerSecond, p50, p99 }, responses };
}

/** Estimates what a request costs. `NaN` if the contender was not measured. */
export function estimateCpu<Name>(samples: Samples<Name>, name: Name): Estimate {
  return estimate((samples.get(name) ?? []).map(({ cpu }) => cpu));
}
