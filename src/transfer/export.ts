import type { DescMessage } from "@bufbuild/protobuf";
import { ExportHeaderSchema, ExportLineSchema } from "../../gen/latchkey/store/v1/export_pb.js";
import { createConverter } from "../contract/message-converter.js";
import { asBuffer } from "../lib/bytes.js";
import type { EventRecord } from "../store/port/events.js";
import type { ApplicationFields, SessionFields } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import type { EventKey } from "../store/port/transfer.js";
import {
  type Counts,
  formatVersion,
  type Header,
  type Item,
  noCounts,
  type RecordKind,
  recordKinds,
} from "./format.js";

export interface ExportPosition {
  readonly counts: Counts;
  readonly last?: Item | undefined;
}

interface ExportOptions {
  readonly store: Pick<Store, "transfer">;
  readonly withEvents: boolean;
  /** Where to resume. */
  readonly from?: ExportPosition | undefined;
}

/** Lines, and the number of records up to and including them. */
interface ExportedPart {
  readonly text: string;
  readonly counts: Counts;
}

/** Records per page, which bounds memory. Large records make a page smaller. */
const pageSize = 200;

/** Reads all records of a store as lines, without the header. */
export async function* exportRecords({
  store,
  withEvents,
  from,
}: ExportOptions): AsyncGenerator<ExportedPart, void, void> {
  const { transfer } = store;
  const counts = { ...(from?.counts ?? noCounts()) };

  /** Exports one kind, unless the export to resume had already passed it. */
  async function* exportKind<R, P>(
    kind: RecordKind,
    read: (after: P | undefined, limit: number) => Promise<readonly R[]>,
    positionOf: (record: R) => P,
    toLine: (record: R) => string,
  ): AsyncGenerator<ExportedPart, void, void> {
    const last = from?.last;
    if (last && recordKinds.indexOf(last.kind) > recordKinds.indexOf(kind)) {
      return;
    }
    let position = last?.kind === kind ? positionOf(last.record as R) : undefined;
    // Read the next page while this one is written.
    let next = read(position, pageSize);
    for (;;) {
      const page = await next;
      const end = page.at(-1);
      if (end === undefined) {
        return;
      }
      position = positionOf(end);
      // After a page of large records, request fewer.
      next = read(position, Math.min(pageSize, 2 * page.length));
      next.catch(() => {});
      counts[`${kind}s`] += page.length;
      yield { text: page.map(toLine).join(""), counts: { ...counts } };
    }
  }

  const byId = ({ id }: { readonly id: string }) => id;
  yield* exportKind("application", transfer.exportApplications, byId, applicationLine);
  yield* exportKind("session", transfer.exportSessions, byId, sessionLine);
  if (withEvents) {
    yield* exportKind<EventRecord, EventKey>(
      "event",
      transfer.exportEvents,
      (event) => event,
      eventLine,
    );
  }
  yield { text: endLine(counts), counts };
}

export function headerLine(header: Partial<Omit<Header, "latchkeyExport">>): string {
  return writeHeader({ ...header, latchkeyExport: formatVersion });
}

export function applicationLine(application: ApplicationFields): string {
  return writeLine({ application });
}

export function sessionLine(session: SessionFields): string {
  return writeLine({ session });
}

export function eventLine(event: EventRecord): string {
  return writeLine({ event });
}

export function endLine(end: Counts): string {
  return writeLine({ end });
}

const writeHeader = createWriter(ExportHeaderSchema);
const writeLine = createWriter(ExportLineSchema);

/** Creates a writer of messages as lines. See line-reader.ts for the reader. */
function createWriter(schema: DescMessage): (content: object) => string {
  const convert = createConverter(schema, {
    nameAfter: ({ name }) => name,
    values: {
      time: (time: number) => new Date(time).toISOString(),
      bytes: (bytes: Uint8Array) => asBuffer(bytes).toString("base64"),
    },
  });
  return (content) => `${JSON.stringify(convert(content))}\n`;
}
