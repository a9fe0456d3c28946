/** Export and import of applications, sessions and events. */
import { type Binary, BSON, type Collection, type Document, type Filter } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { isRevoked, parentIdsOf, withParents } from "../core/liveness.js";
import type { EventRecord, NewEvent } from "../port/events.js";
import {
  type ImportContext,
  importEvent,
  isWritten,
  mergeApplication,
  mergeSession,
  outcomeOfApplication,
  outcomeOfEvent,
  outcomeOfSession,
  removalsOfApplication,
  removalsOfSession,
} from "../port/import.js";
import type { ApplicationFields, ApplicationRecord, SessionFields } from "../port/records.js";
import { createPageBudget } from "../port/store.js";
import type { TransferStore } from "../port/transfer.js";
import type { EventDocument } from "./documents.js";
import {
  type ApplicationDocument,
  fromUuid,
  type LogEntry,
  notExpired,
  type SessionDocument,
  type Time,
  toApplication,
  toApplicationDocument,
  toSession,
  toSessionDocument,
  uuid,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { toEvent, toEventDocument } from "./event-documents.js";
import { type ExternalIdOwners, type ExternalIds, isTaken, ownerKey } from "./external-ids.js";
import { type FoundEvents, type Importer, importAll } from "./import.js";
import type { EntriesAfter } from "./log/record-entries.js";
import { findOwners, toBase64 } from "./lookup.js";

interface TransferParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly events: Collection<EventDocument>;
  readonly externalIds: ExternalIds;
  readonly entriesAfter: EntriesAfter;
  /** Resolves when the log has all changes that were acknowledged before. */
  readonly waitForLog: () => Promise<void>;
  readonly time: Time;
  /** The store's clock. */
  readonly now: () => MaybePromise<number>;
}

export function createTransfer(parts: TransferParts): TransferStore {
  const { applications, sessions, events, externalIds, entriesAfter, waitForLog, time, now } =
    parts;

  /** The unexpired applications with these ids. */
  async function findApplications(ids: Iterable<string>): Promise<Map<string, ApplicationRecord>> {
    const filter = { _id: { $in: [...new Set(ids)].map(uuid) }, ...notExpired(time) };
    const found = await callDriver(() =>
      applications.find(filter, limitsOf(applications)).toArray(),
    );
    return new Map(found.map(toApplication).map((owner) => [owner.id, owner]));
  }

  /** Maps the hashes of imported keys to the unexpired applications that already have them. */
  async function findTaken(records: readonly ApplicationFields[]) {
    const imported = records.flatMap(({ keys }) => keys.filter((key) => key.imported));
    const hashes = imported.map(({ hash }) => hash);
    return hashes.length > 0
      ? findOwners(applications, hashes, notExpired(time))
      : new Map<string, string[]>();
  }

  /** Finds events of these kinds about these records. */
  async function findEvents(
    records: readonly (ApplicationFields | SessionFields)[],
    kinds: readonly string[],
  ): Promise<FoundEvents> {
    await waitForLog();
    const tenants = new Map<string, string[]>();
    for (const { id, tenantId } of records) {
      tenants.set(tenantId, [...(tenants.get(tenantId) ?? []), id]);
    }
    const among = [...tenants].map(([tenantId, ids]) => ({
      tenant_id: uuid(tenantId),
      targets: { $in: ids.map(uuid) },
    }));
    const filter = { $or: among, kind: { $in: kinds }, outcome: "success" } as const;
    const options = { projection: { targets: 1, kind: 1 }, ...limitsOf(events) };
    const found = await callDriver(() => events.find(filter, options).toArray());
    const kindsOf = new Map<string, string[]>();
    for (const { targets, kind } of found) {
      for (const id of targets.map(fromUuid)) {
        kindsOf.set(id, [...(kindsOf.get(id) ?? []), kind]);
      }
    }
    return kindsOf;
  }

  return {
    exportApplications: async (after, limit) =>
      (await readAfter(applications, notExpired(time), after, limit)).map(toApplication),

    async exportSessions(after, limit) {
      for (let last = after; ; ) {
        const found = (await readAfter(sessions, notExpired(time), last, limit)).map(toSession);
        const owners = await findApplications(
          found.flatMap((session) => parentIdsOf("session", session)),
        );
        const valid = found.filter(
          (session) =>
            !isRevoked(
              "session",
              withParents("session", session, (id) => owners.get(id)),
            ),
        );
        if (valid.length > 0 || found.length === 0) {
          return valid;
        }
        last = found.at(-1)?.id;
      }
    },

    async exportEvents(after, limit) {
      if (!after) {
        await waitForLog();
      }
      return (await readAfter(events, {}, after?.id, limit)).map(toEvent);
    },

    async importApplications(records, options) {
      const owners = await findTaken(records);
      const externalIdOwners = await externalIds.findOwners(records);
      const imported = applicationImporter(
        applications,
        { byKeyHash: owners, byExternalId: externalIdOwners },
        { entriesAfter, now: await now(), replace: options.replace },
      );
      const importer: typeof imported = {
        ...imported,
        findEvents: (absent) => findEvents(absent, removalsOfApplication),
        claim: (record) => externalIds.claim(record),
        async prepareRetry(pending) {
          const found = await externalIds.findOwners(pending);
          for (const { tenantId, externalId } of pending) {
            const key = externalId === undefined ? "" : ownerKey(tenantId, externalId);
            const owner = found.get(key);
            if (owner === undefined) {
              externalIdOwners.delete(key);
            } else {
              externalIdOwners.set(key, owner);
            }
          }
        },
      };
      return importAll(importer, records, options);
    },

    async importSessions(records, options) {
      const current = await now();
      const owners = await findApplications(
        records.flatMap((record) => parentIdsOf("session", record)),
      );
      const imported = sessionImporter(sessions, owners, {
        entriesAfter,
        now: current,
        replace: options.replace,
      });
      const findRemovalEvents = (absent: readonly SessionFields[]) =>
        findEvents(absent, [...new Set(absent.flatMap(removalsOfSession))]);
      return importAll({ ...imported, findEvents: findRemovalEvents }, records, options);
    },

    importEvents: (records, options) => importAll(eventImporter(events), records, options),
  };
}

/** Reads up to `limit` documents after an id, ordered by id; fewer if they are large. */
async function readAfter<D extends Document & { readonly _id: Binary }>(
  documents: Collection<D>,
  filter: Document,
  after: string | undefined,
  limit: number,
): Promise<D[]> {
  const following = after === undefined ? {} : { _id: { $gt: uuid(after) } };
  // One more than can be found, so that one response contains all.
  const options = {
    sort: { _id: 1 },
    limit,
    batchSize: limit + 1,
    hint: { _id: 1 },
    raw: true,
    ...limitsOf(documents),
  } as const;
  const all = { ...following, ...filter } as unknown as Filter<D>;
  return callDriver(() => decodePage(documents.find<Uint8Array>(all, options)));
}

/** Limits the bytes, because decoded documents take several times the memory. */
async function decodePage<D>(found: AsyncIterable<Uint8Array>): Promise<D[]> {
  const budget = createPageBudget();
  const decoded: D[] = [];
  for await (const bytes of found) {
    if (!budget.tryAdd(bytes.length)) {
      break;
    }
    decoded.push(BSON.deserialize(bytes) as D);
  }
  return decoded;
}

/** A version that was never used: others count up from 1 or from an earlier timestamp. */
const newVersion = (now: number, existing: { readonly version: number } | undefined) =>
  Math.max(now, (existing?.version ?? 0) + 1);

function toImportContext(
  id: string,
  events: FoundEvents,
  { now, replace }: Writing,
): ImportContext {
  const hasEvent = (kinds: readonly string[]) =>
    events.get(id)?.some((kind) => kinds.includes(kind)) ?? false;
  return { replace, now, hasEvent };
}

/** How records are written. */
interface Writing {
  readonly entriesAfter: EntriesAfter;
  readonly now: number;
  readonly replace: boolean;
}

const isRecord = (document: Document): boolean => document.expires_at !== 0;

/** A document that takes the place of another one, with the entries that the log may not have. */
async function withEntries(
  document: Document,
  existing: { readonly rev: number; readonly last?: readonly LogEntry[] } | undefined,
  event: NewEvent | undefined,
  { entriesAfter, now }: Writing,
): Promise<Document> {
  const last = await entriesAfter(existing?.last ?? [], { event, now, revokes: true });
  return { ...document, rev: (existing?.rev ?? 0) + 1, ...(last && { last }) };
}

/** The applications, stored or imported, that have values which no other application may have. */
interface Owners {
  /** By the hash of an imported key. */
  readonly byKeyHash: Map<string, readonly string[]>;
  readonly byExternalId: ExternalIdOwners;
}

function applicationImporter(
  documents: Collection<ApplicationDocument>,
  owners: Owners,
  writing: Writing,
): Importer<ApplicationDocument, ApplicationFields> {
  /** Whether another application already has one of the imported keys. */
  function hasTakenKey({ id, keys }: ApplicationFields): boolean {
    const hashes = keys.filter((key) => key.imported).map(({ hash }) => toBase64(hash));
    const hasTaken = hashes.some((hash) =>
      owners.byKeyHash.get(hash)?.some((owner) => owner !== id),
    );
    for (const hash of hasTaken ? [] : hashes) {
      owners.byKeyHash.set(hash, [id]);
    }
    return hasTaken;
  }

  /** Whether another application already has the external id. Otherwise the stored one is given up. */
  function hasTakenExternalId(
    record: ApplicationFields,
    stored: ApplicationRecord | undefined,
  ): boolean {
    const { id, tenantId, externalId } = record;
    const hasTaken = isTaken(record, owners.byExternalId);
    if (hasTaken) {
      return true;
    }
    const previous = ownerKey(tenantId, stored?.externalId ?? "");
    if (owners.byExternalId.get(previous) === id) {
      owners.byExternalId.delete(previous);
    }
    if (externalId !== undefined) {
      owners.byExternalId.set(ownerKey(tenantId, externalId), id);
    }
    return false;
  }

  return {
    documents,
    decide(existing, record, events) {
      const context = toImportContext(record.id, events, writing);
      const stored = existing && toApplication(existing);
      const outcome = outcomeOfApplication(stored, record, context);
      if (!isWritten(outcome)) {
        return outcome;
      }
      if (hasTakenKey(record)) {
        return "key_taken";
      }
      return hasTakenExternalId(record, stored) ? "external_id_taken" : outcome;
    },
    isRecord,
    toDocument(record, existing) {
      const stored = existing && isRecord(existing) ? toApplication(existing) : undefined;
      const merged = mergeApplication(stored, record);
      const document = toApplicationDocument(merged, newVersion(writing.now, stored));
      return withEntries(document, existing, stored && importEvent(record), writing);
    },
    unchanged: ({ _id, rev }) => ({ _id, rev }),
  };
}

function sessionImporter(
  documents: Collection<SessionDocument>,
  owners: ReadonlyMap<string, ApplicationRecord>,
  writing: Writing,
): Importer<SessionDocument, SessionFields> {
  return {
    documents,
    decide(existing, record, events) {
      const isOwned = (id: string) => owners.get(id)?.tenantId === record.tenantId;
      if (!parentIdsOf("session", record).every(isOwned)) {
        return "ownerless";
      }
      const context = toImportContext(record.id, events, writing);
      return outcomeOfSession(existing && toSession(existing), record, context);
    },
    isRecord,
    toDocument(record, existing) {
      const stored = existing && isRecord(existing) ? toSession(existing) : undefined;
      const merged = mergeSession(stored, record);
      const document = toSessionDocument(merged, newVersion(writing.now, stored));
      return withEntries(document, existing, stored && importEvent(record), writing);
    },
    unchanged: ({ _id, rev }) => ({ _id, rev }),
  };
}

function eventImporter(documents: Collection<EventDocument>): Importer<EventDocument, EventRecord> {
  return {
    documents,
    decide: (existing, record) => outcomeOfEvent(existing && toEvent(existing), record),
    toDocument: toEventDocument,
    unchanged: ({ _id }) => ({ _id }),
  };
}
