import { startWorker } from "../../child-processes.js";
import { type BenchContext, type Instance, listInstances, reportProgress } from "../../context.js";
import type { LoadGenerator } from "../../load/generator.js";
import type { Load } from "../../load/load.js";
import type { Plan } from "../../plan.js";
import { pinProcess } from "../../processes.js";
import { percentile } from "../../report/estimate.js";
import type { SuiteResult } from "../../report/report.js";
import { type Column, createTable, format } from "../../report/table.js";
import { type CreatedApplication, privateApplication } from "../../seed.js";
import { addressOf, startLatchkey } from "../../servers.js";
import type { Revocation, RevokeTask } from "./worker.js";

/** A way to revoke keys. */
interface Variant {
  readonly name: string;
  /** The instance that revokes. The guard watches the first one. */
  readonly revokedBy: "first" | "second";
  readonly revocations: number;
  readonly maxPauseMs: number;
}

/** Without pauses, revocations would synchronize with the polling of the store. */
const shortPauseMs = 10;
/** Longer than the 500 ms between heartbeats. */
const longPauseMs = 800;

/** Measures the time from the acknowledgement of a revocation to the first refusal by a guard. */
export async function measureRevocation(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const variants = createVariants(plan);
  const series: RevocationSeries[] = [];
  for (const instance of listInstances(context)) {
    reportProgress(`revocation: ${instance.name}`);
    series.push(...(await revokeKeys(instance, context, variants)));
  }
  return {
    section: {
      name: "revocation",
      table: createTable(revocationColumns, series),
      pageTables: [createTable(pageColumns, series)],
      notes: [
        "The guard ran in its own process with default settings and checked without a pause.",
        "Half of the keys were revoked by deleting the application, half by regenerating the key.",
        `Random pauses of up to ${shortPauseMs} ms between revocations; long pauses are up to ${longPauseMs} ms.`,
        ...(context.cores.load === undefined
          ? []
          : [`Service on core ${context.cores.server}, guard on core ${context.cores.load}.`]),
      ],
    },
  };
}

function createVariants({ revocations, spacedRevocations }: Plan): Variant[] {
  return [
    { name: "same process", revokedBy: "first", revocations, maxPauseMs: shortPauseMs },
    { name: "another process", revokedBy: "second", revocations, maxPauseMs: shortPauseMs },
    {
      name: "another process, long pauses",
      revokedBy: "second",
      revocations: spacedRevocations,
      maxPauseMs: longPauseMs,
    },
  ];
}

async function revokeKeys(
  instance: Instance,
  { cores, generator }: BenchContext,
  variants: readonly Variant[],
): Promise<RevocationSeries[]> {
  const { name, server, keys, store } = instance;
  const second = await startLatchkey(store, { cores: cores.server });
  const worker = startWorker<RevokeTask, Revocation[]>(
    new URL("worker.ts", import.meta.url),
    cores.load,
  );
  // The guard uses all of its core, so the database must not share it.
  pinDatabase(instance, cores.database === cores.load ? cores.server : cores.database);
  const series: RevocationSeries[] = [];
  for (const variant of variants) {
    const revocations = await worker.run({
      kind: "revoke",
      url: addressOf(server),
      revokeUrl: addressOf(variant.revokedBy === "first" ? server : second),
      checkingKey: keys.checking,
      managementKey: keys.management,
      applications: await createApplications(instance, generator, variant.revocations),
      maxPauseMs: variant.maxPauseMs,
    });
    series.push({ store: name, variant: variant.name, revocations });
  }
  pinDatabase(instance, cores.database);
  return series;
}

function pinDatabase({ databasePid }: Instance, cores: string | undefined): void {
  if (databasePid !== undefined) {
    pinProcess(databasePid, cores);
  }
}

/** The revocations of one variant. */
interface RevocationSeries {
  readonly store: string;
  readonly variant: string;
  readonly revocations: readonly Revocation[];
}

type Metric = (revocation: Revocation) => number;

const lastAllowed: Metric = ({ refusalStartedMs }) => refusalStartedMs;
const firstRefused: Metric = ({ refusalReturnedMs }) => refusalReturnedMs;

const revocationColumns: readonly Column<RevocationSeries>[] = [
  { title: "Store", isText: true, text: ({ store }) => store },
  { title: "Revoked through", isText: true, text: ({ variant }) => variant },
  { title: "Revocations", text: ({ revocations }) => format(revocations.length, 0) },
  {
    title: "Refused immediately",
    text: ({ revocations }) => format(revocations.filter(({ allowed }) => allowed === 0).length, 0),
  },
  {
    title: "Checks allowed after",
    text: ({ revocations }) =>
      format(
        revocations.reduce((sum, { allowed }) => sum + allowed, 0),
        0,
      ),
  },
  { title: "Still allowed, ms: p50", text: formatPercentile(50, lastAllowed) },
  { title: "p99", text: formatPercentile(99, lastAllowed) },
  { title: "max", text: formatPercentile(100, lastAllowed) },
  { title: "Refused after ms: p50", text: formatPercentile(50, firstRefused) },
  { title: "p99", text: formatPercentile(99, firstRefused) },
  { title: "max", text: formatPercentile(100, firstRefused) },
];

/** The page shows only how long a revoked key was still allowed. */
const pageColumns = [...revocationColumns.slice(0, 4), ...revocationColumns.slice(5, 8)] as const;

function formatPercentile(percent: number, metric: Metric): (series: RevocationSeries) => string {
  return ({ revocations }) => format(percentile(revocations.map(metric), percent), 2);
}

const maxConnections = 32;
const maxSeconds = 60;

/** Creates applications through the API. */
async function createApplications(
  { server, keys }: Instance,
  generator: LoadGenerator,
  count: number,
): Promise<CreatedApplication[]> {
  const load: Load = {
    protocol: "http1",
    port: server.port,
    connections: Math.min(maxConnections, count),
    verb: "POST",
    path: "/applications",
    status: 201,
    requests: Array.from({ length: count }, () => ({
      key: keys.management,
      body: privateApplication,
    })),
    once: true,
    keepResponses: true,
  };
  const { responses } = await generator.run(server, load, maxSeconds);
  if (responses.length < count) {
    throw new Error(`only ${responses.length} applications were created in ${maxSeconds} s`);
  }
  return responses.map((response) => JSON.parse(response));
}
