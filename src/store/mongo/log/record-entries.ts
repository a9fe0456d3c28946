/** The entries of the log that the document of a record carries. */
import { BSON, type Collection } from "mongodb";
import { StoreUnavailable } from "../../port/errors.js";
import type { NewEvent } from "../../port/events.js";
import {
  type EventDocument,
  fromUuid,
  type LogEntry,
  type StoredResponse,
  uuid,
} from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";
import { type EventIds, toEventDocument } from "../event-documents.js";
import type { ResponseDocuments } from "../responses.js";
import type { ChangeLog } from "./change-log.js";

interface RecordEntryParts {
  readonly events: Collection<EventDocument>;
  readonly eventIds: EventIds;
  readonly log: Pick<ChangeLog, "has">;
  readonly responses: Pick<ResponseDocuments, "store">;
}

/** A change of a record. */
interface LoggedChange {
  readonly event?: NewEvent | undefined;
  readonly response?: StoredResponse | undefined;
  readonly now: number;
  /** Whether it must be made even if the log is behind. */
  readonly revokes?: boolean | undefined;
}

/**
 * Returns the entries of a document after a change, given those before it: entries that
 * the log may not have stay, so that nothing is lost if the oplog is. Absent if there are none.
 */
export type EntriesAfter = (
  last: readonly LogEntry[],
  change: LoggedChange,
) => Promise<LogEntry[] | undefined>;

/** Entries that a document may carry before it is checked whether the log has them. */
const maxUnchecked = 4;

/** What a document may carry of changes that are not in the log. */
const maxCarried = { entries: 100, bytes: 4 * 1024 * 1024 };

export function createEntriesAfter(parts: RecordEntryParts): EntriesAfter {
  const { events, eventIds, log, responses } = parts;

  /** The ids of the entries that are in the log. */
  async function findLogged(entries: readonly LogEntry[]): Promise<Set<string>> {
    const filter = { _id: { $in: entries.map(({ id }) => id) } };
    const options = { projection: { _id: 1 }, ...limitsOf(events) };
    const found = await callDriver(() => events.find(filter, options).toArray());
    return new Set(found.map(({ _id }) => fromUuid(_id)));
  }

  async function carriedOf(last: readonly LogEntry[], { now, revokes }: LoggedChange) {
    // A retry looks for them in the document and then among the stored ones.
    const unexpired = last.flatMap(({ response }) =>
      response && response.expires_at.getTime() > now ? [response] : [],
    );
    await responses.store(unexpired);
    const unknown = last.flatMap(({ id, at, event }): LogEntry[] =>
      event && !log.has(fromUuid(id), at) ? [{ id, at, event }] : [],
    );
    if (unknown.length <= maxUnchecked) {
      return unknown;
    }
    const logged = await findLogged(unknown);
    const left = unknown.filter(({ id }) => !logged.has(fromUuid(id)));
    if (isTooMuch(left) && !revokes) {
      throw new StoreUnavailable("The audit log does not have the latest changes of the record.");
    }
    return left;
  }

  const isTooMuch = (entries: readonly LogEntry[]) =>
    entries.length > maxCarried.entries ||
    entries.reduce((sum, entry) => sum + BSON.calculateObjectSize(entry), 0) > maxCarried.bytes;

  return async (last, change) => {
    const { event, response, now } = change;
    if (!event && !response && last.length === 0) {
      return undefined;
    }
    const carried = await carriedOf(last, change);
    if (!event && !response) {
      return carried;
    }
    const newest = last.at(-1);
    const id = eventIds.after(newest && fromUuid(newest.id));
    const entry = {
      id: uuid(id),
      at: new Date(now),
      ...(event && { event: toEventDocument({ ...event, id, at: now }) }),
      ...(response && { response }),
    };
    return [...carried, entry];
  };
}
