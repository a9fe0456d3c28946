/** Reads the records that a change needs, together with the time. */
import type { Collection } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { isRevoked, parentIdsOf, withParents } from "../core/liveness.js";
import type { LiveRecords, RecordKind, RecordRef, Records } from "../port/change.js";
import { isUnexpired } from "../port/records.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  type SessionDocument,
  type Time,
  toApplication,
  toSession,
} from "./documents.js";
import { createDocumentLookup, type DocumentRead } from "./lookup.js";

/** Records as they were at about the same time. */
export interface RecordsRead {
  /** The time of the latest read. */
  readonly now: number;
  /** When the first read started, by `performance.now()`. */
  readonly startedAt: number;

  /** Finds a record that was read, if it is unexpired and not revoked. */
  find<K extends RecordKind>(ref: RecordRef<K>): LiveRecords[K] | undefined;

  /** The document of a record, expired or a tombstone, too. */
  documentOf<K extends RecordKind>(ref: RecordRef<K>): DocumentRead<Records[K]> | undefined;

  /** The version of a record that was read, if it is unexpired. */
  versionOf(ref: RecordRef): number | undefined;

  /** Whether all records but this one, read again, have their versions and have not expired. */
  areCurrent(except: RecordRef): Promise<boolean>;
}

/** Reads records with those that they depend on. */
export type ReadRecords = (refs: readonly RecordRef[]) => Promise<RecordsRead>;

interface ChangeReadParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly now: () => MaybePromise<number>;
}

type Found = DocumentRead<Records[RecordKind]> | undefined;

const keyOf = ({ kind, id }: RecordRef): string => `${kind} ${id}`;

export function createReadRecords(parts: ChangeReadParts): ReadRecords {
  const { applications, sessions, time, freshRead, now } = parts;
  const lookups = {
    application: createDocumentLookup(applications, time, freshRead, toApplication),
    session: createDocumentLookup(sessions, time, freshRead, toSession),
  };

  return async function read(refs) {
    const startedAt = performance.now();
    const stored = new Map<string, { readonly ref: RecordRef; readonly found: Promise<Found> }>();

    async function load(ref: RecordRef): Promise<void> {
      const key = keyOf(ref);
      if (!stored.has(key)) {
        stored.set(key, { ref, found: lookups[ref.kind](ref.id) });
      }
      const found = await stored.get(key)?.found;
      if (found?.record && ref.kind === "session") {
        const ids = parentIdsOf("session", found.record as Records["session"]);
        await Promise.all(ids.map((id) => load({ kind: "application", id })));
      }
    }

    await Promise.all(refs.map(load));
    const byKey = new Map<string, Found>();
    for (const [key, { found }] of stored) {
      byKey.set(key, await found);
    }
    const times = [...byKey.values()].flatMap((one) => one?.now ?? []);
    const latest = times.length > 0 ? Math.max(...times) : await now();

    function documentOf<K extends RecordKind>(ref: RecordRef<K>) {
      return byKey.get(keyOf(ref)) as DocumentRead<Records[K]> | undefined;
    }

    function unexpired<K extends RecordKind>(kind: K, id: string): Records[K] | undefined {
      const record = documentOf({ kind, id })?.record;
      return isUnexpired<Records[RecordKind]>(record, latest) ? record : undefined;
    }

    function find<K extends RecordKind>({ kind, id }: RecordRef<K>) {
      if (kind === "application") {
        return unexpired("application", id) as LiveRecords[K] | undefined;
      }
      const session = unexpired("session", id);
      const found =
        session && withParents("session", session, (one) => unexpired("application", one));
      return (isRevoked("session", found) ? undefined : found) as LiveRecords[K] | undefined;
    }

    const versionOf = ({ kind, id }: RecordRef) => unexpired(kind, id)?.version;

    async function areCurrent(except: RecordRef): Promise<boolean> {
      const others = [...stored.values()].flatMap(({ ref }) =>
        keyOf(ref) === keyOf(except) ? [] : [ref],
      );
      if (others.length === 0) {
        return true;
      }
      const again = await read(others);
      return others.every((ref) => versionOf(ref) === again.versionOf(ref));
    }

    return { now: latest, startedAt, find, documentOf, versionOf, areCurrent };
  };
}
