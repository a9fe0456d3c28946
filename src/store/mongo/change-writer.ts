/** Writes a decided change, its event and its response in one transaction. */
import { type ClientSession, type Collection, ObjectId } from "mongodb";
import type { Decided, RecordChange } from "../core/decide.js";
import { endedChildrenOf } from "../core/liveness.js";
import type { Change, Reads, RecordKind } from "../port/change.js";
import { ExternalIdTaken, LastManager } from "../port/errors.js";
import type { ApplicationRecord } from "../port/records.js";
import { findOtherManager } from "./application-queries.js";
import type { RecordsRead } from "./change-reads.js";
import {
  type ApplicationDocument,
  notExpired,
  notExpiredByIndex,
  type SessionDocument,
  type Time,
  toWrite,
  uuid,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import type { EventWriter } from "./event-documents.js";
import { type ExternalIds, isTaken } from "./external-ids.js";
import type { ResponseDocuments } from "./responses.js";
import type { SessionCleanup } from "./session-cleanup.js";

interface ChangeWriterParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly time: Time;
  readonly events: EventWriter;
  readonly responses: ResponseDocuments;
  readonly externalIds: ExternalIds;
  readonly sessionCleanup: SessionCleanup;
}

type RecordDocument = Pick<ApplicationDocument | SessionDocument, "_id" | "version">;

interface Transaction {
  readonly session: ClientSession;
  commit(): Promise<void>;
}

/** Writes a decided change. Returns false if what was read for it is no longer current. */
export type WriteChange = (
  change: Pick<Change<RecordKind, Reads, unknown>, "target" | "creates" | "idempotencyId">,
  decided: Decided<unknown>,
  read: RecordsRead,
  transaction: Transaction,
) => Promise<boolean>;

/**
 * The records that a decision used are read again before the write if they were
 * read longer ago than this, in milliseconds.
 */
const maxAge = 20;

export function createChangeWriter(parts: ChangeWriterParts): WriteChange {
  const { time, events, responses, externalIds, sessionCleanup } = parts;
  const collections = {
    application: parts.applications as unknown as Collection<RecordDocument>,
    session: parts.sessions as unknown as Collection<RecordDocument>,
  };

  /**
   * Ensures that the other conditions of a change hold when its transaction commits. A
   * new primary may roll back data that a transaction has read, so a refusal is
   * confirmed by a commit of the transaction, which has only written locks.
   */
  async function lockOthers(
    { change, needsOtherManager, claimedExternalId }: Decided<unknown>,
    { session, commit }: Transaction,
  ): Promise<void> {
    if (change?.kind !== "application") {
      return;
    }
    const { before, after } = change;
    if (before && needsOtherManager && !(await lockOtherManager(before, session))) {
      await commit();
      throw new LastManager();
    }
    if (after && claimedExternalId !== undefined) {
      const { id, tenantId } = after;
      const claim = { id, tenantId, externalId: claimedExternalId };
      if (isTaken(claim, await externalIds.lock([claim], session))) {
        await commit();
        throw new ExternalIdTaken(claimedExternalId);
      }
    }
  }

  /**
   * Locks another manager of the tenant, if there is one, by a write to it: two
   * transactions that rely on each other's application conflict.
   */
  async function lockOtherManager(
    application: ApplicationRecord,
    session: ClientSession,
  ): Promise<boolean> {
    const { applications } = parts;
    const isLive = notExpiredByIndex(time);
    const other = await findOtherManager(applications, application, isLive, session);
    if (other) {
      const lock = { $set: { manager_lock: new ObjectId() } };
      await callDriver(() =>
        applications.updateOne({ _id: other._id }, lock, limitsOf(applications, session)),
      );
    }
    return other !== null;
  }

  /** Returns false if the record has changed or expired since it was read. */
  async function writeRecord(
    change: RecordChange,
    session: ClientSession | undefined,
  ): Promise<boolean> {
    const { kind, id, before } = change;
    const documents = collections[kind];
    const options = limitsOf(documents, session);
    const { document, update } = toWrite(change);
    if (!before) {
      await callDriver(() => documents.insertOne(document as RecordDocument, options));
      return true;
    }
    const unchanged = { _id: uuid(id), version: before.version, ...notExpired(time) };
    const count = await callDriver(async () =>
      update
        ? (await documents.updateOne(unchanged, update, options)).matchedCount
        : (await documents.deleteOne(unchanged, options)).deletedCount,
    );
    return count === 1;
  }

  function cleanUpSessions(change: RecordChange): void {
    const { kind, before, after, id } = change;
    if (kind === "application" && before && endedChildrenOf(kind, before, after).length > 0) {
      sessionCleanup.start(uuid(id), after);
    }
  }

  return async ({ target, creates, idempotencyId }, decided, read, transaction) => {
    const { change, event, response } = decided;
    const { session } = transaction;
    const isOld = () => performance.now() - read.startedAt > maxAge;
    const isCurrent = async () => !isOld() || (await read.areCurrent(target));
    const storeResponse = async (within?: ClientSession) =>
      idempotencyId === undefined || !response
        ? true
        : responses.store(idempotencyId, response, read.now, within);
    if (!change) {
      return (await isCurrent()) && storeResponse();
    }
    if (creates && !event && idempotencyId === undefined) {
      // A single write needs no transaction. If the rights of the caller change during it, revoking
      // its sessions afterwards includes this one.
      return (await isCurrent()) && writeRecord(change, undefined);
    }
    await lockOthers(decided, transaction);
    if (!(await writeRecord(change, session))) {
      return false;
    }
    const writeLog = async () => {
      await events.insert(event ? [event] : [], session);
      return storeResponse(session);
    };
    const startedAt = performance.now();
    // A transaction must not end during a write.
    const [logged, current] = await Promise.allSettled([writeLog(), isCurrent()]);
    for (const settled of [logged, current]) {
      if (settled.status === "rejected") {
        throw settled.reason;
      }
      if (!settled.value) {
        return false;
      }
    }
    if (performance.now() - startedAt > maxAge && !(await read.areCurrent(target))) {
      return false;
    }
    await transaction.commit();
    cleanUpSessions(change);
    return true;
  };
}
