import type { Binary, Db, Document, ResumeToken } from "mongodb";
import { uuid } from "./documents.js";
import { eventsName } from "./event-collections.js";
import { type EventStream, openEventStream } from "./event-stream.js";

/** An event that was added, as the change stream tells it. */
export interface InsertedEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
  readonly tenant_id?: Binary;
  /** Its document in BSON, a part of a whole answer of the server; none of what is not asked for. */
  readonly documents?: readonly (Uint8Array | null)[];
}

/** The events that are added, of all tenants. */
export const openInsertedEvents = (db: Db, start: string): EventStream<InsertedEvent> =>
  open(db, start, ["$fullDocument"]);

/** The same, marked the same, but with the contents of those of one tenant only. */
export const openInsertedEventsOf = (
  tenantId: string,
  db: Db,
  start: string,
): EventStream<InsertedEvent> =>
  open(db, start, { $cond: [{ $eq: [tenant, uuid(tenantId)] }, ["$fullDocument"], []] });

const tenant = "$fullDocument.tenant_id";

const inserts = {
  $match: {
    $or: [{ operationType: "insert", "ns.coll": eventsName }, { operationType: "invalidate" }],
  },
};

/** The driver can leave undecoded what is in a list, so the document comes as the only one of its list. */
function open(
  db: Db,
  start: string,
  documents: Document | readonly string[],
): EventStream<InsertedEvent> {
  const fields = { operationType: 1, tenant_id: tenant, documents };
  // However many events wait in memory to be read, the server answers no more than 16 MB of them at once.
  const options = { fieldsAsRaw: { documents: true } };
  return openEventStream(db, [inserts, { $project: fields }], start, options);
}
