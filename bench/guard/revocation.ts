import { pin } from "../cores.js";
import type { Findings } from "../findings.js";
import type { Plan } from "../plan.js";
import { addressOf, startLatchkey } from "../servers.js";
import { type Stage, subjectsOf, tell } from "../stage.js";
import type { Subject } from "../subjects.js";
import { tableOf } from "../table.js";
import { startWorker } from "../worker-process.js";
import { createApplications } from "./create-applications.js";
import type { Revocation, RevokeOrder } from "./orders.js";
import { pageColumns, type RevocationSeries, revocationColumns } from "./revocation-table.js";

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
    tell(`revocation: ${subject.name}`);
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
