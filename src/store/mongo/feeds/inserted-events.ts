/** The change stream of the audit log: the events that are added to it. */
import type { Binary, Db, Document, ResumeToken } from "mongodb";
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

/** New events of all tenants. */
export const openInsertedEvents = (db: Db, start: string): EventStream<InsertedEvent> =>
  open(db, start, ["$fullDocument"]);

/** The same events and offsets, but with the documents of one tenant only. */
export const openInsertedEventsOf = (
  tenantId: string,
  db: Db,
  start: string,
): EventStream<InsertedEvent> =>
  open(db, start, { $cond: [{ $eq: [tenant, uuid(tenantId)] }, ["$fullDocument"], []] });

const tenant = "$fullDocument.tenant_id";

const collections = { $in: [applicationsName, sessionsName, eventsName] };

const insertedEvents = {
  $match: {
    $or: [
      { operationType: "insert", "ns.coll": eventsName },
      { operationType: { $in: ["drop", "rename"] }, "ns.coll": collections },
      { operationType: "rename", "to.coll": collections },
      { operationType: { $in: ["dropDatabase", "invalidate"] } },
    ],
  },
};

/** The driver can return array elements undecoded, so the document is returned in an array of one. */
function open(
  db: Db,
  start: string,
  documents: Document | readonly string[],
): EventStream<InsertedEvent> {
  const fields = { operationType: 1, tenant_id: tenant, documents };
  // The server returns at most 16 MB at once, which limits the memory of unread events.
  const options = { fieldsAsRaw: { documents: true } };
  return openEventStream(db, [insertedEvents, { $project: fields }], start, options);
}

/** The tenant of an event. Absent for another operation. */
export function tenantOf({ operationType, tenant_id }: InsertedEvent): string | undefined {
  return operationType === "insert" && tenant_id ? fromUuid(tenant_id) : undefined;
}
