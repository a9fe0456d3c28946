import type { EventRecord } from "../store/events.js";
import type { Store } from "../store/store.js";
import type { EventPlace } from "../store/transfer.js";
import { type Counts, type Item, noCounts, type RecordKind, recordKinds } from "./format.js";
import { applicationLine, endLine, eventLine, sessionLine } from "./write-lines.js";

/** How far an export has come. */
export interface ExportPlace {
  readonly counts: Counts;
  /** The last record that was written. */
  readonly last?: Item | undefined;
}

interface ExportOptions {
  readonly store: Pick<Store, "transfer">;
  readonly withEvents: boolean;
  /** From where to go on. */
  readonly from?: ExportPlace | undefined;
}

/** Some lines, and how many records these and all before them are. */
export interface ExportedPart {
  readonly text: string;
  readonly counts: Counts;
}

/** Records read at a time: so many are held in memory, and fewer where they are large. */
const pageSize = 200;

/** Reads all that a store holds as lines, those of the first line excepted. */
export async function* exportRecords({
  store,
  withEvents,
  from,
}: ExportOptions): AsyncGenerator<ExportedPart, void, void> {
  const { transfer } = store;
  const counts = { ...(from?.counts ?? noCounts()) };

  /** Writes one kind, unless another that comes later was reached before. */
  async function* walk<R, P>(
    kind: RecordKind,
    read: (after: P | undefined, limit: number) => Promise<readonly R[]>,
    placeOf: (record: R) => P,
    toLine: (record: R) => string,
  ): AsyncGenerator<ExportedPart, void, void> {
    const last = from?.last;
    if (last && recordKinds.indexOf(last.kind) > recordKinds.indexOf(kind)) {
      return;
    }
    let place = last?.kind === kind ? placeOf(last.record as R) : undefined;
    // The next page is read while this one is written.
    let next = read(place, pageSize);
    for (;;) {
      const page = await next;
      const end = page.at(-1);
      if (end === undefined) {
        return;
      }
      place = placeOf(end);
      // Where few found room it would be in vain to ask for many again.
      next = read(place, Math.min(pageSize, 2 * page.length));
      next.catch(() => {});
      counts[`${kind}s`] += page.length;
      yield { text: page.map(toLine).join(""), counts: { ...counts } };
    }
  }

  const byId = ({ id }: { readonly id: string }) => id;
  yield* walk("application", transfer.exportApplications, byId, applicationLine);
  yield* walk("session", transfer.exportSessions, byId, sessionLine);
  if (withEvents) {
    yield* walk<EventRecord, EventPlace>(
      "event",
      transfer.exportEvents,
      (event) => event,
      eventLine,
    );
  }
  yield { text: endLine(counts), counts };
}
