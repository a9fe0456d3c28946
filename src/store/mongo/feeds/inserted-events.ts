/** The change streams of events: of the audit log, or of the entries that records carry. */
import type { Binary, Db, ResumeToken } from "mongodb";
import { applicationsName, eventsName, sessionsName } from "../collections.js";
import { fromUuid, uuid } from "../documents.js";
import { type EventStream, openEventStream } from "./change-stream.js";

/** A new event as the change stream returns it, or another operation after which events may be missing. */
export interface InsertedEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
  readonly tenant_id?: Binary;
  /** The document in BSON, a view of the response buffer. Empty for other tenants' events. */
  readonly documents?: readonly (Uint8Array | null)[];
}

/** Where a feed reads its events. */
export type FeedOrigin = "log" | "records";

/** New events of all tenants, or with the documents of one tenant only: the offsets are the same. */
export function openInsertedEvents(
  origin: FeedOrigin,
  db: Db,
  start: string,
  tenantId?: string,
): EventStream<InsertedEvent> {
  const { match, event } = origins[origin];
  const documents =
    tenantId === undefined
      ? [`$event`]
      : { $cond: [{ $eq: ["$event.tenant_id", uuid(tenantId)] }, ["$event"], []] };
  const stages = [
    { $match: { $or: [match, ...gaps] } },
    { $project: { operationType: 1, event } },
    {
      $project: {
        operationType: { $cond: [{ $ifNull: ["$event", false] }, "insert", "$operationType"] },
        tenant_id: "$event.tenant_id",
        // The driver can return array elements undecoded, so the document is returned in an array of one.
        documents,
      },
    },
    { $match: { operationType: { $nin: ["update", "replace"] } } },
  ];
  // The server returns at most 16 MB at once, which limits the memory of unread events.
  return openEventStream(db, stages, start, { fieldsAsRaw: { documents: true } });
}

const exists = { $exists: true };

/** The newest entry that a document carries is that of its last change. */
const newestOf = (last: string) => ({ $arrayElemAt: [`${last}.event`, -1] });

const origins = {
  /** The events in the order of the audit log. */
  log: {
    match: { operationType: "insert", "ns.coll": eventsName },
    event: "$fullDocument",
  },
  /** The events of changes, as soon as they are made. */
  records: {
    match: {
      "ns.coll": { $in: [applicationsName, sessionsName] },
      $or: [
        { "updateDescription.updatedFields.last.event": exists },
        { "fullDocument.last.event": exists },
      ],
    },
    event: {
      $ifNull: [newestOf("$updateDescription.updatedFields.last"), newestOf("$fullDocument.last")],
    },
  },
} as const;

const collections = { $in: [applicationsName, sessionsName, eventsName] };

/** Operations after which events may be missing. */
const gaps = [
  { operationType: { $in: ["drop", "rename"] }, "ns.coll": collections },
  { operationType: "rename", "to.coll": collections },
  { operationType: { $in: ["dropDatabase", "invalidate"] } },
];

/** The tenant of an event. Absent for another operation. */
export function tenantOf({ operationType, tenant_id }: InsertedEvent): string | undefined {
  return operationType === "insert" && tenant_id ? fromUuid(tenant_id) : undefined;
}
