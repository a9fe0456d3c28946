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

/**
 * How many events the server may answer at once, which then wait in memory to
 * be read. However large they are, it answers no more than 16 MB.
 */
const batchSize = 16;

/** The driver can leave undecoded what is in a list, so the document comes as the only one of its list. */
function open(
  db: Db,
  start: string,
  documents: Document | readonly string[],
): EventStream<InsertedEvent> {
  const fields = { operationType: 1, tenant_id: tenant, documents };
  const options = { batchSize, fieldsAsRaw: { documents: true } };
  return openEventStream(db, [inserts, { $project: fields }], start, options);
}
