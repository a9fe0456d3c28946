import { type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  type Event,
  EventSchema,
  EventService,
  ListEventsRequestSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { maximumOf } from "../../../src/contract/fields.js";
import { restJson } from "../rest-json.js";
import { byteOrderMark, toCsv } from "../ui/csv.js";

const size = maximumOf(ListEventsRequestSchema.field.size);

/** A page may be empty although older events match, so a rare filter needs many of them. */
const maxPages = 500;

interface Exported {
  readonly events: readonly Event[];
  /** Whether the search reached the oldest event. */
  readonly isComplete: boolean;
}

interface ReadOptions {
  readonly transport: Transport;
  readonly request: MessageInitShape<typeof ListEventsRequestSchema>;
  /** The most events, which the browser holds in memory. */
  readonly max: number;
  readonly signal: AbortSignal;
  onProgress(count: number): void;
}

/** Reads the events that match a request, newest first, up to the maximum of events or pages. */
export async function readEvents(options: ReadOptions): Promise<Exported> {
  const { transport, request, max, signal, onProgress } = options;
  const client = createClient(EventService, transport);
  const events: Event[] = [];
  let start: string | undefined;
  let pages = 0;
  do {
    const page = { size, ...(start !== undefined && { start }) };
    const { data, pagination } = await client.listEvents({ ...request, ...page }, { signal });
    events.push(...data);
    onProgress(events.length);
    start = pagination?.next;
    pages++;
  } while (start !== undefined && events.length < max && pages < maxPages);
  return { events: events.slice(0, max), isComplete: start === undefined };
}

/** One JSON object per line, as REST returns them. */
export function toJsonLines(events: readonly Event[]): string {
  return events.map((event) => `${toJsonString(EventSchema, event, restJson)}\n`).join("");
}

const columns: readonly (readonly [name: string, (event: Event) => unknown])[] = [
  ["time", ({ at }) => isoTime(at)],
  ["kind", ({ kind }) => kind],
  ["outcome", ({ outcome }) => outcome],
  ["reason", ({ reason }) => reason],
  ["count", ({ count }) => count],
  ["target_name", ({ target }) => target?.name],
  ["target_application_id", ({ target }) => target?.applicationId],
  ["target_session_id", ({ target }) => target?.sessionId],
  ["target_key_id", ({ target }) => target?.keyId],
  ["actor_name", ({ actor }) => actor?.name],
  ["actor_application_id", ({ actor }) => actor?.applicationId],
  ["actor_session_id", ({ actor }) => actor?.sessionId],
  ["actor_key_id", ({ actor }) => actor?.keyId],
  ["method", ({ method }) => method],
  ["address", ({ address }) => address],
  ["request_id", ({ requestId }) => requestId],
  ["ends_at", ({ endsAt }) => isoTime(endsAt)],
  ["opened_only", ({ openedOnly }) => openedOnly],
  ["id", ({ id }) => id],
];

/** A CSV file with one event per row, without the states before and after. */
export function toCsvFile(events: readonly Event[]): string {
  const rows = events.map((event) => columns.map(([, read]) => read(event)));
  return byteOrderMark + toCsv([columns.map(([name]) => name), ...rows]);
}

function isoTime(time: Timestamp | undefined): string | undefined {
  return time && timestampDate(time).toISOString();
}
