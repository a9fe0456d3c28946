/** Writes a decided change with one conditional write, which also carries its entry for the log. */
import type { Collection, Document, Filter, WithId } from "mongodb";
import type { Decided, RecordChange } from "../core/decide.js";
import { endedChildrenOf } from "../core/liveness.js";
import type { Change, Reads, RecordKind } from "../port/change.js";
import { ExternalIdTaken, LastManager } from "../port/errors.js";
import type { ApplicationRecord } from "../port/records.js";
import { findOtherManager } from "./application-queries.js";
import type { RecordsRead } from "./change-reads.js";
import { managerFilter } from "./collections.js";
import {
  type ApplicationDocument,
  type LogEntry,
  notExpired,
  notExpiredByIndex,
  type SessionDocument,
  type Time,
  tombstoneAt,
  toWrite,
  uuid,
} from "./documents.js";
import { callDriver, isDuplicateKey, limitsOf } from "./driver-call.js";
import type { ExternalIds } from "./external-ids.js";
import type { DocumentRead } from "./lookup.js";
import type { SessionCleanup } from "./session-cleanup.js";

interface ChangeWriterParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly time: Time;
  readonly externalIds: ExternalIds;
  readonly sessionCleanup: SessionCleanup;
}

type RecordDocument = WithId<Document> & Pick<ApplicationDocument | SessionDocument, "_id" | "rev">;

export interface ChangeWriter {
  /**
   * Ensures that the other conditions of a change hold when it is written. Returns false if
   * something has changed since it was read. Throws a refusal.
   */
  prepare(decided: Decided<unknown>): Promise<boolean>;

  /**
   * Writes a record with the entries that its document carries then. Returns false if the document
   * has changed since it was read, or if the write comes too late.
   */
  write(
    change: Pick<Change<RecordKind, Reads, unknown>, "target" | "creates">,
    decided: RecordChange,
    read: RecordsRead,
    last: readonly LogEntry[] | undefined,
  ): Promise<boolean>;
}

/** Milliseconds after a read until which the database may write what was decided on it. */
const timeToWrite = 1_000;

export function createChangeWriter(parts: ChangeWriterParts): ChangeWriter {
  const { applications, time, externalIds, sessionCleanup } = parts;
  const collections = {
    application: applications as unknown as Collection<RecordDocument>,
    session: parts.sessions as unknown as Collection<RecordDocument>,
  };

  /** Compares the database's own time, so that the clocks of instances do not matter. */
  const isBefore = (deadline: Date) => ({ $lt: [time(), deadline] });

  /**
   * Touches another manager of the tenant. Of two changes that rely on each other's application, one
   * then fails, because the `rev` that it read is not current. Returns false on a conflict.
   */
  async function relyOnOtherManager(application: ApplicationRecord): Promise<boolean> {
    const other = await findOtherManager(applications, application, notExpiredByIndex(time));
    if (!other) {
      throw new LastManager();
    }
    const { _id, rev } = other;
    const stillManages = { ...managerFilter, disabled: { $ne: true }, ...notExpired(time) };
    const { matchedCount } = await callDriver(() =>
      applications.updateOne(
        { _id, rev, ...stillManages },
        { $inc: { rev: 1 } },
        limitsOf(applications),
      ),
    );
    return matchedCount === 1;
  }

  /** Inserts a document where there is none. After the deadline, only a tombstone. */
  async function insert(
    documents: Collection<RecordDocument>,
    document: Document,
    now: number,
  ): Promise<boolean> {
    const { _id } = document;
    const late = { _id, rev: 1, ...tombstoneAt(now) };
    const deadline = new Date(now + timeToWrite);
    const inserted = { $cond: [isBefore(deadline), { $literal: document }, { $literal: late }] };
    const options = {
      upsert: true,
      returnDocument: "after",
      projection: { expires_at: 1 },
      ...limitsOf(documents),
    } as const;
    try {
      const written = await callDriver(() =>
        documents.findOneAndUpdate(
          { _id, rev: { $exists: false } },
          [{ $replaceWith: inserted }],
          options,
        ),
      );
      return written?.expires_at !== 0;
    } catch (error) {
      if (isDuplicateKey(error)) {
        return false;
      }
      throw error;
    }
  }

  async function writeRecord(
    { target, creates }: Pick<Change<RecordKind, Reads, unknown>, "target" | "creates">,
    change: RecordChange,
    { now, documentOf }: RecordsRead,
    last: readonly LogEntry[] | undefined,
  ): Promise<boolean> {
    const { kind, id, before } = change;
    const documents = collections[kind];
    const options = limitsOf(documents);
    const { document, update } = toWrite(change);
    const existing: DocumentRead<unknown> | undefined = documentOf({ kind: target.kind, id });
    const carried = last && { last };
    if (document && !existing) {
      const inserted = { ...document, rev: 1, ...carried } as unknown as RecordDocument;
      if (last) {
        return insert(documents, inserted, now);
      }
      // Nothing can depend on a session that was just opened, so it may be late.
      await callDriver(() => documents.insertOne(inserted, options));
      return true;
    }
    if (!existing || (creates && existing.record)) {
      throw new Error(
        `The id of the ${kind} ${existing ? "exists already" : "does not exist"}: ${id}.`,
      );
    }
    const expiry = before?.expiresAt ?? Number.POSITIVE_INFINITY;
    const deadline = new Date(Math.min(now + timeToWrite, expiry));
    const unchanged = { _id: uuid(id), rev: existing.rev, $expr: isBefore(deadline) };
    const filter = unchanged as unknown as Filter<RecordDocument>;
    const rev = existing.rev + 1;
    const { matchedCount } = await callDriver(async () => {
      if (update) {
        // The whole array: of a changed one, the stream would return the changed elements.
        const fields = { ...update.$set, rev, ...carried };
        return documents.updateOne(filter, { ...update, $set: fields }, options);
      }
      const replacement = { ...(document ?? tombstoneAt(now)), rev, ...carried };
      return documents.replaceOne(filter, replacement as unknown as RecordDocument, options);
    });
    return matchedCount === 1;
  }

  return {
    async prepare({ change, needsOtherManager, claimedExternalId }) {
      if (change?.kind !== "application") {
        return true;
      }
      const { before, after } = change;
      if (after && claimedExternalId !== undefined) {
        const { id, tenantId } = after;
        if (!(await externalIds.claim({ id, tenantId, externalId: claimedExternalId }))) {
          throw new ExternalIdTaken(claimedExternalId);
        }
      }
      return before && needsOtherManager ? relyOnOtherManager(before) : true;
    },

    async write(change, decided, read, last) {
      const isWritten = await writeRecord(change, decided, read, last);
      const { kind, before, after, id } = decided;
      if (isWritten && kind === "application" && before) {
        if (endedChildrenOf(kind, before, after).length > 0) {
          sessionCleanup.start(uuid(id), after);
        }
      }
      return isWritten;
    },
  };
}
