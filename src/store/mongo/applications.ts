import { type ClientSession, type Collection, type Document, ObjectId } from "mongodb";
import { isId } from "../../lib/uuid-text.js";
import {
  type ApplicationStore,
  claimedExternalId,
  isManager,
  stopsManaging,
} from "../port/applications.js";
import { ExternalIdTaken, LastManager } from "../port/errors.js";
import { type ApplicationRecord, type KeyUse, newApplication } from "../port/records.js";
import { revokesSessions } from "../port/sessions.js";
import { findOtherManager, listApplications } from "./application-queries.js";
import type { ChangeWriter } from "./change-writer.js";
import { byExpiry } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  changedFields,
  expiredByIndex,
  notExpired,
  notExpiredByIndex,
  type Time,
  toApplication,
  toApplicationDocument,
  uuid,
} from "./documents.js";
import { callDriver, insert, limitsOf } from "./driver-call.js";
import { type Claim, type ExternalIds, isTaken } from "./external-ids.js";
import { createFindByImportedKey, createLookup } from "./lookup.js";
import type { SessionCleanup } from "./session-cleanup.js";

interface ApplicationStoreOptions {
  readonly documents: Collection<ApplicationDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly changeWriter: ChangeWriter;
  readonly externalIds: ExternalIds;
  readonly sessionCleanup: SessionCleanup;
}

export function createApplicationStore(options: ApplicationStoreOptions): ApplicationStore {
  const { documents, time, freshRead, changeWriter, externalIds, sessionCleanup } = options;
  const find = createLookup(documents, time, freshRead, toApplication);

  /** Reads an application together with the current time. */
  async function readNow(tenantId: string, id: string, session: ClientSession) {
    const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...notExpired(time) };
    const pipeline = [{ $match: filter }, { $replaceWith: { document: "$$ROOT", now: time() } }];
    type Read = { document: ApplicationDocument; now: Date };
    const [read] = await callDriver(() =>
      documents.aggregate<Read>(pipeline, limitsOf(documents, session)).toArray(),
    );
    return read && { current: toApplication(read.document), now: read.now.getTime() };
  }

  /** Matches an application unless it has changed since it was read. */
  const unchanged = ({ id, tenantId, version }: ApplicationRecord) => ({
    _id: uuid(id),
    tenant_id: uuid(tenantId),
    version,
    ...notExpired(time),
  });

  /** Ensures that no other application has the external id when the transaction commits. */
  async function lockExternalId(claim: Claim, session: ClientSession): Promise<void> {
    const { externalId } = claim;
    if (externalId !== undefined && isTaken(claim, await externalIds.lock([claim], session))) {
      throw new ExternalIdTaken(externalId);
    }
  }

  return {
    async create(application, context) {
      const created_at = time();
      // The computed times replace this one.
      const fields = toApplicationDocument(newApplication(application, 0), 1);
      const keys = fields.keys.map((key: Document) => ({
        $mergeObjects: [{ $literal: key }, { created_at }],
      }));
      const computed = { created_at, idle_since: created_at, keys };
      const created = await changeWriter.write(application.id, context, async (session) => {
        await lockExternalId(application, session);
        return toApplication(await insert(documents, fields, computed, session));
      });
      return created as ApplicationRecord;
    },

    async isEmpty() {
      const first = { projection: { _id: 1 }, hint: byExpiry, ...limitsOf(documents) };
      return (await callDriver(() => documents.findOne(notExpiredByIndex(time), first))) === null;
    },

    find,

    // They start in the same tick, so that they share one query.
    findMany: (ids) => Promise.all(ids.map(find)),

    async findExpired(id) {
      if (!isId(id)) {
        return undefined;
      }
      const filter = { _id: uuid(id), ...expiredByIndex(time) };
      const found = await callDriver(() =>
        documents.findOne(filter, { ...limitsOf(documents), ...freshRead() }),
      );
      return found ? toApplication(found) : undefined;
    },

    findByImportedKey: createFindByImportedKey(documents, freshRead, find),

    list: (query, signal) => listApplications(options, query, signal),

    async update(tenantId, id, change, context) {
      let before: ApplicationRecord | undefined;
      const eventFor = (record: ApplicationRecord) =>
        record === before ? undefined : context.eventFor(record);
      const audited = { ...context, eventFor };
      const changed = await changeWriter.write(id, audited, async (session, confirmReads) => {
        const read = await readNow(tenantId, id, session);
        if (!read) {
          await confirmReads();
          return undefined;
        }
        before = read.current;
        const wanted = change(before, read.now);
        if (!wanted) {
          return before;
        }
        if (stopsManaging(before, wanted)) {
          await lockOtherManager(documents, before, time, session);
        }
        const externalId = claimedExternalId(before, wanted);
        await lockExternalId({ id, tenantId, externalId }, session);
        const fields = changedFields(before, wanted);
        const filter = unchanged(before);
        const after = await callDriver(() =>
          documents.findOneAndUpdate(filter, [{ $set: { ...fields, modified_at: time() } }], {
            returnDocument: "after",
            ...limitsOf(documents, session),
          }),
        );
        if (!after) {
          // It has expired since it was read. Any other change would conflict.
          await confirmReads();
          return undefined;
        }
        return toApplication(after);
      });
      if (changed && before && revokesSessions(before, changed)) {
        sessionCleanup.start(uuid(id), changed);
      }
      return changed;
    },

    async delete(tenantId, id, context, assertAllowed) {
      const deleted = await changeWriter.write(id, context, async (session, confirmReads) => {
        const read = await readNow(tenantId, id, session);
        if (!read) {
          await confirmReads();
          return undefined;
        }
        const { current } = read;
        assertAllowed?.(current);
        if (isManager(current)) {
          await lockOtherManager(documents, current, time, session);
        }
        const { deletedCount } = await callDriver(() =>
          documents.deleteOne(unchanged(current), limitsOf(documents, session)),
        );
        if (deletedCount === 0) {
          // It has expired since it was read.
          await confirmReads();
          return undefined;
        }
        return current;
      });
      if (deleted) {
        sessionCleanup.start(uuid(id));
      }
      return deleted !== undefined;
    },

    recordUses: (uses) => recordUses(documents, uses),
  };
}

/**
 * Before an application stops managing its tenant, ensures that another manager
 * exists when the transaction commits. It writes to the other manager, so that
 * two transactions that rely on each other's application conflict.
 */
async function lockOtherManager(
  documents: Collection<ApplicationDocument>,
  application: ApplicationRecord,
  time: Time,
  session: ClientSession,
): Promise<void> {
  const other = await findOtherManager(documents, application, notExpiredByIndex(time), session);
  if (!other) {
    throw new LastManager();
  }
  const lock = { $set: { manager_lock: new ObjectId() } };
  await callDriver(() =>
    documents.updateOne({ _id: other._id }, lock, limitsOf(documents, session)),
  );
}

/** Uses per command. Keeps a command far below its time limit. */
const batchSize = 500;

/** Records when applications and their keys were last used. */
async function recordUses(
  documents: Collection<ApplicationDocument>,
  uses: readonly KeyUse[],
): Promise<void> {
  for (let start = 0; start < uses.length; start += batchSize) {
    const updates = uses.slice(start, start + batchSize).map(toUpdate);
    const { maxTimeMS } = limitsOf(documents);
    // Waiting for a majority keeps writers from outrunning the secondaries. Not
    // journaled: after a crash, the next use writes the time again.
    const writeConcern = { w: "majority", journal: false, wtimeoutMS: maxTimeMS } as const;
    const options = { ordered: false, writeConcern, maxTimeMS };
    await callDriver(() => documents.bulkWrite(updates, options));
  }
}

function toUpdate({ applicationId, keyId, at }: KeyUse) {
  const moment = new Date(at);
  const fields = {
    last_used_at: atLeast("$last_used_at", moment),
    idle_since: atLeast("$idle_since", moment),
  };
  const keyUpdate = keyId === undefined ? {} : { keys: withUse(keyId, moment) };
  const update = [{ $set: { ...fields, ...keyUpdate } }];
  return { updateOne: { filter: { _id: uuid(applicationId) }, update } };
}

/** The keys after a use of the one with this id. The same if it was removed. */
function withUse(keyId: string, moment: Date): Document {
  const use = { last_used_at: atLeast("$$this.last_used_at", moment) };
  const updated = { $mergeObjects: ["$$this", use] };
  const isUsed = { $eq: ["$$this.id", uuid(keyId)] };
  return { $map: { input: "$keys", in: { $cond: [isUsed, updated, "$$this"] } } };
}

const atLeast = (field: string, moment: Date): Document => ({ $max: [field, moment] });
