import type { Collection, Document } from "mongodb";
import { isId } from "../../lib/uuid-text.js";
import type { ApplicationStore } from "../port/applications.js";
import type { KeyUse } from "../port/records.js";
import { listApplications } from "./application-queries.js";
import { byExpiry } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  expiredByIndex,
  notExpiredByIndex,
  type Time,
  toApplication,
  uuid,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { createFindByImportedKey, createLookup } from "./lookup.js";

interface ApplicationStoreOptions {
  readonly documents: Collection<ApplicationDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

export function createApplicationStore(options: ApplicationStoreOptions): ApplicationStore {
  const { documents, time, freshRead } = options;
  const find = createLookup(documents, time, freshRead, toApplication);

  return {
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

    recordUses: (uses) => recordUses(documents, uses),
  };
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
  // Not a tombstone.
  return { updateOne: { filter: { _id: uuid(applicationId), expires_at: { $ne: 0 } }, update } };
}

/** The keys after a use of the one with this id. The same if it was removed. */
function withUse(keyId: string, moment: Date): Document {
  const use = { last_used_at: atLeast("$$this.last_used_at", moment) };
  const updated = { $mergeObjects: ["$$this", use] };
  const isUsed = { $eq: ["$$this.id", uuid(keyId)] };
  return { $map: { input: "$keys", in: { $cond: [isUsed, updated, "$$this"] } } };
}

const atLeast = (field: string, moment: Date): Document => ({ $max: [field, moment] });
