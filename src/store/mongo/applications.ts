import { type ClientSession, type Collection, type Document, ObjectId } from "mongodb";
import { heldPermissions } from "../../contract/grants.js";
import { isId } from "../../lib/uuid.js";
import { type ApplicationStore, foldName, isManager, stopsManaging } from "../port/applications.js";
import { LastManager } from "../port/errors.js";
import type { ApplicationChange, ApplicationRecord, KeyUse } from "../port/records.js";
import { findOtherManager, listApplications } from "./application-queries.js";
import type { Transactions } from "./change-writer.js";
import { byExpiry } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  date,
  expiredByIndex,
  grantFields,
  hash,
  keyFields,
  literal,
  literalOrRemove,
  long,
  notExpired,
  notExpiredByIndex,
  type Time,
  toApplication,
  uuid,
} from "./documents.js";
import { callDriver, insert, limitsOf } from "./driver-call.js";
import { createFindForeign, createLookup } from "./lookup.js";
import type { SessionCleanup } from "./session-cleanup.js";

interface ApplicationStoreOptions {
  readonly documents: Collection<ApplicationDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly transactions: Transactions;
  readonly sessionCleanup: SessionCleanup;
}

export function createApplicationStore(options: ApplicationStoreOptions): ApplicationStore {
  const { documents, time, freshRead, transactions, sessionCleanup } = options;
  const find = createLookup(documents, time, freshRead, toApplication);

  /** Reads an application together with the current time. */
  async function readNow(tenantId: string, id: string, session: ClientSession | undefined) {
    const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...notExpired(time) };
    const pipeline = [{ $match: filter }, { $replaceWith: { document: "$$ROOT", now: time() } }];
    type Read = { document: ApplicationDocument; now: Date };
    const [read] = await callDriver(() =>
      documents.aggregate<Read>(pipeline, limitsOf(documents, session)).toArray(),
    );
    return read && { current: toApplication(read.document), now: read.now.getTime() };
  }

  const timestamps = () => {
    const now = time();
    return { created_at: now, key_created_at: now, idle_since: now };
  };

  /** Matches an application unless it has changed since it was read. */
  const unchanged = ({ id, tenantId, version }: ApplicationRecord) => ({
    _id: uuid(id),
    tenant_id: uuid(tenantId),
    version,
    ...notExpired(time),
  });

  return {
    async create(application, audit) {
      const fields = {
        _id: uuid(application.id),
        tenant_id: uuid(application.tenantId),
        name: application.name,
        folded_name: foldName(application.name),
        type: application.type,
        key_hash: hash(application.key.hash),
        key_id: uuid(application.key.id),
        ...grantFields(application),
        held_permissions: heldPermissions(application),
        allowed_origins: application.allowedOrigins,
        allowed_cidrs: application.allowedCidrs,
        created_by: application.createdBy && uuid(application.createdBy),
        expires_at: date(application.expiresAt),
        session_quota: application.sessionQuota,
        version: 1,
      };
      const created = await transactions.change(application.id, audit, async (session) =>
        toApplication(await insert(documents, fields, timestamps(), session)),
      );
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

    findForeign: createFindForeign(documents, freshRead, find),

    list: (query, signal) => listApplications(options, query, signal),

    async update(tenantId, id, change, audit) {
      let before: ApplicationRecord | undefined;
      const changed = await transactions.change(id, audit, async (session, confirmReads) => {
        for (;;) {
          const read = await readNow(tenantId, id, session);
          if (!read) {
            await confirmReads();
            return undefined;
          }
          before = read.current;
          const filter = unchanged(before);
          const wanted = change(before, read.now);
          if (stopsManaging(before, wanted)) {
            await lockOtherManager(documents, before, time, session);
          }
          const fields = fieldsOf(wanted, before);
          const after = await callDriver(() =>
            documents.findOneAndUpdate(filter, [{ $set: { ...fields, modified_at: time() } }], {
              returnDocument: "after",
              ...limitsOf(documents, session),
            }),
          );
          if (after) {
            return toApplication(after);
          }
        }
      });
      if (changed && before && changed.sessionEpoch > before.sessionEpoch) {
        sessionCleanup.start(uuid(id), changed.sessionEpoch);
      }
      return changed;
    },

    async delete(tenantId, id, check, audit) {
      const deleted = await transactions.change(id, audit, async (session, confirmReads) => {
        for (;;) {
          const read = await readNow(tenantId, id, session);
          if (!read) {
            await confirmReads();
            return undefined;
          }
          check?.(read.current);
          if (isManager(read.current)) {
            await lockOtherManager(documents, read.current, time, session);
          }
          const filter = unchanged(read.current);
          const { deletedCount } = await callDriver(() =>
            documents.deleteOne(filter, limitsOf(documents, session)),
          );
          if (deletedCount === 1) {
            return read.current;
          }
        }
      });
      if (deleted) {
        sessionCleanup.start(uuid(id));
      }
      return deleted !== undefined;
    },

    recordUses: (uses) => recordUses(documents, uses),
  };
}

/** The fields that a change writes, as expressions. */
function fieldsOf(change: ApplicationChange, current: ApplicationRecord) {
  const { permissions = current.permissions, rules = current.rules } = change;
  const isGranting = change.permissions !== undefined || change.rules !== undefined;
  return {
    ...literal({
      name: change.name,
      folded_name: change.name === undefined ? undefined : foldName(change.name),
      ...grantFields(change),
      held_permissions: isGranting ? heldPermissions({ permissions, rules }) : undefined,
      allowed_origins: change.allowedOrigins,
      allowed_cidrs: change.allowedCidrs,
      disabled: change.disabled,
      session_epoch: change.sessionEpoch,
      modified_by: uuid(change.modifiedBy),
      version: long(current.version + 1),
    }),
    ...(change.sessionQuota !== undefined &&
      literalOrRemove({ session_quota: change.sessionQuota ?? undefined })),
    ...(change.keys && literalOrRemove(keyFields(change.keys))),
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
  session: ClientSession | undefined,
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
    last_used_at: later("$last_used_at", moment),
    idle_since: later("$idle_since", moment),
  };
  const ofKey = keyId === undefined ? {} : fieldsOfKey(keyId, moment);
  const update = [{ $set: { ...fields, ...ofKey } }];
  return { updateOne: { filter: { _id: uuid(applicationId) }, update } };
}

/** Updates the key with this id, whether newest or older. Changes nothing if the key was removed. */
function fieldsOfKey(keyId: string, moment: Date): Document {
  const id = uuid(keyId);
  const updated = {
    $mergeObjects: ["$$key", { last_used_at: later("$$key.last_used_at", moment) }],
  };
  const isThis = (key: string) => ({ $eq: [key, id] });
  return {
    key_last_used_at: {
      $cond: [isThis("$key_id"), later("$key_last_used_at", moment), orRemove("$key_last_used_at")],
    },
    older_keys: {
      $cond: [
        { $isArray: "$older_keys" },
        {
          $map: {
            input: "$older_keys",
            as: "key",
            in: { $cond: [isThis("$$key.id"), updated, "$$key"] },
          },
        },
        "$$REMOVE",
      ],
    },
  };
}

const later = (field: string, moment: Date): Document => ({ $max: [field, moment] });

const orRemove = (field: string): Document => ({ $ifNull: [field, "$$REMOVE"] });
