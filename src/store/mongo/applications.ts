import type { Collection, Document } from "mongodb";
import { isId } from "../../ids.js";
import type { ApplicationStore, ListQuery } from "../store.js";
import {
  type ApplicationDocument,
  date,
  hash,
  literal,
  present,
  toApplication,
  toRuleDocument,
  uuid,
} from "./documents.js";
import { insert } from "./insert.js";
import { createLookup } from "./lookup.js";
import { limits, reach } from "./reach.js";
import { byExpiry, byTenant } from "./schema.js";
import { alive, expired, someAlive, type Time } from "./time.js";

export function createApplicationStore(
  documents: Collection<ApplicationDocument>,
  time: Time,
): ApplicationStore {
  const find = createLookup(documents, time, toApplication);

  return {
    async create(application) {
      const fields = {
        _id: uuid(application.id),
        tenant_id: uuid(application.tenantId),
        name: application.name,
        type: application.type,
        key_hash: hash(application.keyHash),
        permissions: application.permissions,
        rules: application.rules.map(toRuleDocument),
        created_by: application.createdBy && uuid(application.createdBy),
        expires_at: date(application.expiresAt),
        version: 1,
      };
      return toApplication(await insert(documents, fields, { created_at: time() }));
    },

    async isEmpty() {
      const first = { projection: { _id: 1 }, hint: byExpiry, ...limits };
      return (await reach(() => documents.findOne(someAlive(time), first))) === null;
    },

    find,

    // They start in one turn, so that they share their finds.
    findMany: (ids) => Promise.all(ids.map(find)),

    async findExpired(id) {
      if (!isId(id)) {
        return undefined;
      }
      const filter = { _id: uuid(id), ...expired(time) };
      const found = await reach(() => documents.findOne(filter, limits));
      return found ? toApplication(found) : undefined;
    },

    async list(query) {
      const { size, from } = query;
      const skip = "page" in from ? (from.page - 1) * size : 0;
      const filter = { ...among(query), ...alive(time) };
      const options = {
        sort: { _id: -1 },
        skip,
        limit: size + 1,
        hint: byTenant,
        ...limits,
      } as const;
      const found = await reach(() => documents.find(filter, options).toArray());
      const items = found.slice(0, size).map(toApplication);
      const more = found.length > size;
      if (!("page" in from)) {
        return { items, more };
      }
      // The page may know by itself how many there are. Otherwise the count,
      // taken a moment later, must not contradict it.
      const seen = skip + items.length;
      if (!more && (items.length > 0 || skip === 0)) {
        return { items, more, total: seen };
      }
      const total = await count(query);
      return { items, more, total: more ? Math.max(total, seen + 1) : Math.min(total, skip) };
    },

    async update(tenantId, id, change) {
      const key = { _id: uuid(id), tenant_id: uuid(tenantId) };
      for (;;) {
        const current = await reach(() => documents.findOne({ ...key, ...alive(time) }, limits));
        if (!current) {
          return undefined;
        }
        const { name, keyHash, permissions, rules, modifiedBy } = change(toApplication(current));
        const fields = literal({
          name,
          key_hash: keyHash && hash(keyHash),
          permissions,
          rules: rules?.map(toRuleDocument),
          modified_by: uuid(modifiedBy),
          version: current.version + 1,
        });
        const changed = await reach(() =>
          documents.findOneAndUpdate(
            { ...key, version: current.version, ...alive(time) },
            [{ $set: { ...fields, modified_at: time() } }],
            { returnDocument: "after", ...limits },
          ),
        );
        if (changed) {
          return toApplication(changed);
        }
      }
    },

    async delete(tenantId, id) {
      const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...alive(time) };
      const { deletedCount } = await reach(() => documents.deleteOne(filter, limits));
      return deletedCount === 1;
    },
  };

  /** Counts in the index; only what has expired and is not yet swept, which is little, is read. */
  async function count(query: ListQuery): Promise<number> {
    const all = among(query);
    const [there, gone] = await Promise.all([
      reach(() => documents.countDocuments(all, { hint: byTenant, ...limits })),
      reach(() =>
        documents.countDocuments({ ...all, ...expired(time) }, { hint: byExpiry, ...limits }),
      ),
    ]);
    return Math.max(there - gone, 0);
  }
}

function among({ tenantId, ids, from }: ListQuery): Document {
  const id = present({
    $in: ids?.map(uuid),
    $lt: "after" in from ? uuid(from.after) : undefined,
  });
  return { tenant_id: uuid(tenantId), ...(Object.keys(id).length > 0 && { _id: id }) };
}
