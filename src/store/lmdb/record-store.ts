import { startTimeSlice } from "../../lib/event-loop.js";
import { idFromBytes } from "../../lib/uuid.js";
import { endedChildrenOf, isRevoked, withParents } from "../core/liveness.js";
import type { RecordReader } from "../core/record-reader.js";
import type { RecordKind, Records } from "../port/change.js";
import type { SessionRecord } from "../port/records.js";
import { type Clock, createPageBudget } from "../port/store.js";
import { indexesOf, recordKinds } from "../tables.js";
import type { Environment } from "./environment.js";
import { createIndexes, type Indexes, indexPrefix, numberIn } from "./indexes.js";
import { createOpenSessions, type OpenSessions } from "./open-sessions.js";
import { createRecords, type RecordTable } from "./records.js";
import { after, trailingId } from "./row-keys.js";
import { applicationLayout, sessionLayout, storedSizeOf } from "./rows.js";

/** All records, with the rows that are derived from them. All methods run inside `read` or `write`. */
export interface RecordStore {
  readonly tables: { readonly [K in RecordKind]: RecordTable<Records[K]> };
  readonly indexes: Indexes;
  readonly openSessions: OpenSessions;

  find<K extends RecordKind>(kind: K, id: string): Records[K] | undefined;

  /** Replaces a record, and schedules the removal of the records that this ends. One of both may be missing. */
  write<K extends RecordKind>(
    kind: K,
    before: Records[K] | undefined,
    after: Records[K] | undefined,
  ): void;

  removeAll<K extends RecordKind>(kind: K, records: readonly Records[K][]): void;

  /** Whether records wait to be removed because they ended with a parent. */
  hasEnded(): boolean;

  /** Removes the next of them, among up to `limit` records that had one parent. */
  removeEnded(limit: number): void;
}

export function createRecordStore({ tables: { sweeps, ...database } }: Environment): RecordStore {
  const indexes = createIndexes(database);
  // Counts by a generic index would be one more row for each session.
  const openSessions = createOpenSessions(database);
  const tables = {
    application: createRecords(database.applications, applicationLayout),
    session: createRecords(database.sessions, sessionLayout),
  };

  function tableOf<K extends RecordKind>(kind: K): RecordTable<Records[K]> {
    return tables[kind] as unknown as RecordTable<Records[K]>;
  }

  const findApplication = tables.application.find;

  /** Schedules a sweep of the records that had a parent, if there are any. */
  function scheduleSweeps(
    kind: RecordKind,
    before: Records[RecordKind],
    after: Records[RecordKind] | undefined,
  ): void {
    const { tenantId, id: value } = before;
    for (const { kind: child, parent } of endedChildrenOf(kind, before, after)) {
      const range = { kind: child, index: parent.index as never, tenantId, value };
      if (indexes.ids(range, { limit: 1 }).length > 0) {
        const prefix = indexPrefix(range);
        sweeps.put(prefix, prefix);
      }
    }
  }

  function removeAll<K extends RecordKind>(kind: K, records: readonly Records[K][]): void {
    if (kind === "session") {
      openSessions.remove(records as readonly SessionRecord[]);
    }
    for (const record of records) {
      tableOf(kind).remove(record.id);
      indexes.change(kind, record, undefined);
      scheduleSweeps(kind, record, undefined);
    }
  }

  return {
    tables,
    indexes,
    openSessions,
    find: (kind, id) => tableOf(kind).find(id),

    write(kind, before, after) {
      if (!after) {
        removeAll(kind, before ? [before] : []);
        return;
      }
      tableOf(kind).put(after);
      indexes.change(kind, before, after);
      if (kind === "session") {
        openSessions.remove(before ? [before as SessionRecord] : []);
        openSessions.add(after as SessionRecord);
      }
      if (before) {
        scheduleSweeps(kind, before, after);
      }
    },

    removeAll,

    hasEnded: () => sweeps.getKeysCount({ limit: 1 }) > 0,

    removeEnded(limit) {
      for (const { key, value } of [...sweeps.getRange({ limit: 1 })]) {
        const range = { start: value, exclusiveStart: true, end: after(key), limit };
        const rows = [...database.index.getKeys(range)];
        const kind = kindsByIndex.get(numberIn(key)) as RecordKind;
        const found = rows.flatMap((row) => tableOf(kind).find(idFromBytes(trailingId(row))) ?? []);
        removeAll(
          kind,
          found.filter((record) => isRevoked(kind, withParents(kind, record, findApplication))),
        );
        const last = rows[limit - 1];
        if (last) {
          sweeps.put(key, last);
        } else {
          sweeps.remove(key);
        }
      }
    },
  };
}

const kindsByIndex = new Map(
  recordKinds.flatMap((kind) => indexesOf[kind].map(({ number }) => [number, kind] as const)),
);

/** Reads records for lists. */
export function createRecordReader(
  { read }: Pick<Environment, "read">,
  { find, indexes, tables }: RecordStore,
  clock: Clock,
): RecordReader {
  return {
    now: clock,
    find: (kind, id) => read(() => find(kind, id)),
    readAfter: (kind, id, limit) => read(() => tables[kind].after(id, limit) as never),
    sizeOf: storedSizeOf,
    count: (range) => read(() => indexes.count(range)),

    scan({ isBackward, after, skip, limit, ...range }) {
      return read(() => {
        const records: Records[typeof range.kind][] = [];
        const budget = createPageBudget();
        const shouldYield = startTimeSlice();
        for (const key of indexes.keys(range, { isBackward, after, skip, limit })) {
          const record = find(range.kind, idFromBytes(trailingId(key))) as (typeof records)[0];
          if (!budget.tryAdd(storedSizeOf(record)) || (records.length > 0 && shouldYield())) {
            return { records, isEnd: false };
          }
          records.push(record);
        }
        return { records, isEnd: records.length < limit };
      });
    },
  };
}
