import { startWorker } from "../../child-processes.js";
import { reportProgress, type Stage, type Subject, subjectsOf } from "../../context.js";
import type { Generator } from "../../load/generator.js";
import type { Load } from "../../load/load.js";
import type { Plan } from "../../plan.js";
import { pin } from "../../processes.js";
import type { Findings } from "../../report/report.js";
import { type Column, format, percentile, tableOf } from "../../report/table.js";
import { type Made, privateApplication } from "../../seed.js";
import { addressOf, startLatchkey } from "../../servers.js";
import type { Revocation, RevokeOrder } from "./worker.js";

/** How some keys are revoked. */
interface Way {
  readonly name: string;
  /** Who is told to revoke; the guard watches the first Latchkey. */
  readonly by: "first" | "second";
  readonly revokes: number;
  readonly longestPause: number;
}

/** In milliseconds. Without any, revokes fall in step with a store that is looked at in intervals. */
const shortPauses = 10;
/** Heartbeats come after 500 ms of silence. */
const longPauses = 800;

/** The time from the acknowledgement of a revoke to the refusal by a guard. */
export async function measureRevocation(stage: Stage, plan: Plan): Promise<Findings> {
  const ways = waysOf(plan);
  const series: RevocationSeries[] = [];
  for (const subject of subjectsOf(stage)) {
    reportProgress(`revocation: ${subject.name}`);
    series.push(...(await revokeOn(subject, stage, ways)));
  }
  return {
    goals: [],
    section: {
      name: "revocation",
      table: tableOf(revocationColumns, series),
      pageTables: [tableOf(pageColumns, series)],
      facts: [
        "The guard ran in its own process with default settings and checked without a pause.",
        "Half of the keys were revoked by deleting the application, half by regenerating the key.",
        `Random pauses of up to ${shortPauses} ms between revocations; long pauses are up to ${longPauses} ms.`,
        ...(stage.cores.load === undefined
          ? []
          : [`Service on core ${stage.cores.server}, guard on core ${stage.cores.load}.`]),
      ],
    },
  };
}

function waysOf({ revokes, lateRevokes }: Plan): Way[] {
  return [
    { name: "same process", by: "first", revokes, longestPause: shortPauses },
    { name: "another process", by: "second", revokes, longestPause: shortPauses },
    {
      name: "another process, long pauses",
      by: "second",
      revokes: lateRevokes,
      longestPause: longPauses,
    },
  ];
}

async function revokeOn(
  subject: Subject,
  { cores, generator }: Stage,
  ways: readonly Way[],
): Promise<RevocationSeries[]> {
  const { name, server, keys, store } = subject;
  const second = await startLatchkey(store, { cores: cores.server });
  const worker = startWorker<RevokeOrder, Revocation[]>(
    new URL("worker.ts", import.meta.url),
    cores.load,
  );
  // A guard that is asked without a pause leaves nothing of its core to the database.
  pinDatabase(subject, cores.database === cores.load ? cores.server : cores.database);
  const series: RevocationSeries[] = [];
  for (const way of ways) {
    const revocations = await worker.ask({
      kind: "revoke",
      url: addressOf(server),
      revokeUrl: addressOf(way.by === "first" ? server : second),
      checkingKey: keys.checking,
      managementKey: keys.management,
      callers: await createApplications(subject, generator, way.revokes),
      longestPause: way.longestPause,
    });
    series.push({ store: name, way: way.name, revocations });
  }
  pinDatabase(subject, cores.database);
  return series;
}

function pinDatabase({ database }: Subject, cores: string | undefined): void {
  if (database !== undefined) {
    pin(database, cores);
  }
}

/** What became of keys that were revoked in the same way. */
interface RevocationSeries {
  readonly store: string;
  readonly way: string;
  readonly revocations: readonly Revocation[];
}

type Figure = (revocation: Revocation) => number;

const untilNoLongerAllowed: Figure = ({ refusedFrom }) => refusedFrom;
const untilRefused: Figure = ({ refusedBy }) => refusedBy;

const revocationColumns: readonly Column<RevocationSeries>[] = [
  { title: "Store", isText: true, text: ({ store }) => store },
  { title: "Revoked through", isText: true, text: ({ way }) => way },
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
  { title: "Still allowed, ms: p50", text: at(50, untilNoLongerAllowed) },
  { title: "p99", text: at(99, untilNoLongerAllowed) },
  { title: "max", text: at(100, untilNoLongerAllowed) },
  { title: "Refused after ms: p50", text: at(50, untilRefused) },
  { title: "p99", text: at(99, untilRefused) },
  { title: "max", text: at(100, untilRefused) },
];

/** For the page: how long a revoked key was still allowed. */
const pageColumns = [...revocationColumns.slice(0, 4), ...revocationColumns.slice(5, 8)] as const;

function at(percent: number, figure: Figure): (series: RevocationSeries) => string {
  return ({ revocations }) => format(percentile(revocations.map(figure), percent), 2);
}

const lanes = 32;

/** Makes applications through the API. */
export async function createApplications(
  { server, keys }: Subject,
  generator: Generator,
  count: number,
): Promise<Made[]> {
  const load: Load = {
    protocol: "http1",
    port: server.port,
    connections: Math.min(lanes, count),
    seconds: 60,
    verb: "POST",
    path: "/applications",
    status: 201,
    requests: Array.from({ length: count }, () => ({
      key: keys.management,
      body: privateApplication,
    })),
    once: true,
    keepAnswers: true,
  };
  const { answers } = await generator.run(load);
  if (answers.length < count) {
    throw new Error(`only ${answers.length} applications could be made in ${load.seconds} s`);
  }
  return answers.map((answer) => JSON.parse(answer));
}
