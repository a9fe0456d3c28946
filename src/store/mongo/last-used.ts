import type { Collection, Document } from "mongodb";
import type { Use } from "../port/records.js";
import { type ApplicationDocument, uuid } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";

/** Uses per command. Keeps a command far below its time limit. */
const batchSize = 500;

/**
 * Waiting for a majority keeps writers from outrunning the secondaries. Not
 * journaled: after a crash, the next use writes the time again.
 */
const writeConcern = { w: "majority", journal: false, wtimeoutMS: limits.maxTimeMS } as const;

/** Records when applications and their keys were last used. */
export async function recordUses(
  documents: Collection<ApplicationDocument>,
  uses: readonly Use[],
): Promise<void> {
  for (let start = 0; start < uses.length; start += batchSize) {
    const updates = uses.slice(start, start + batchSize).map(toUpdate);
    const options = { ordered: false, writeConcern, ...limits };
    await callDriver(() => documents.bulkWrite(updates, options));
  }
}

function toUpdate({ applicationId, keyId, at }: Use) {
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
