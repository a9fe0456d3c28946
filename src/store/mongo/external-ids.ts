/** Keeps external ids unique in a tenant. A unique index on them would prevent sharding by `_id`. */
import { createHash } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { Binary, type Collection, type Document, ObjectId } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationFields } from "../port/records.js";
import { type CollectionSpec, searchIndexes } from "./collections.js";
import {
  type ApplicationDocument,
  fromUuid,
  notExpired,
  type Time,
  tombstoneAt,
  uuid,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

/** An application whose external id, if any, no other unexpired application of its tenant may have. */
type Claim = Pick<ApplicationFields, "id" | "tenantId" | "externalId">;

/** Maps each tenant with an external id to the unexpired application that has it. See {@link ownerKey}. */
export type ExternalIdOwners = Map<string, string>;

export interface ExternalIds {
  findOwners(claims: readonly Claim[]): Promise<ExternalIdOwners>;

  /**
   * Claims an external id for an application that is about to be written, on condition of the `rev`
   * that was read before. Returns false if another application has it. A claim that is not used does
   * no harm: whoever wants the external id takes it over.
   */
  claim(claim: Claim): Promise<boolean>;
}

export function ownerKey(tenantId: string, externalId: string): string {
  return `${tenantId} ${externalId}`;
}

/** Whether another application has the external id of this one. */
export function isTaken({ id, tenantId, externalId }: Claim, owners: ExternalIdOwners): boolean {
  const owner = externalId === undefined ? undefined : owners.get(ownerKey(tenantId, externalId));
  return owner !== undefined && owner !== id;
}

interface ClaimDocument {
  /** The hash of tenant and external id. */
  readonly _id: Binary;
  /** The only application that may get the external id. */
  readonly owner: Binary;
  /** Changes with each claim. */
  readonly token: ObjectId;
}

export const claimsName = "external_id_claims";

export const claimCollection: CollectionSpec = {
  name: claimsName,
  indexes: [],
  schema: {
    bsonType: "object",
    required: ["_id", "owner", "token"],
    properties: {
      _id: { bsonType: "binData" },
      owner: { bsonType: "binData" },
      token: { bsonType: "objectId" },
    },
  },
};

interface ExternalIdParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly claims: Collection<ClaimDocument>;
  readonly time: Time;
  readonly now: () => MaybePromise<number>;
}

export function createExternalIds(parts: ExternalIdParts): ExternalIds {
  const { applications, claims, time, now } = parts;

  /** Claims for the owner of the claim, or for this one if there is none. */
  async function claimFree(_id: Binary, owner: Binary): Promise<ClaimDocument> {
    const update = [
      { $set: { owner: { $ifNull: ["$owner", owner] } } },
      { $set: { token: { $cond: [{ $eq: ["$owner", owner] }, new ObjectId(), "$token"] } } },
    ];
    const options = { upsert: true, returnDocument: "after", ...limitsOf(claims) } as const;
    const claimed = await callDriver(() => claims.findOneAndUpdate({ _id }, update, options));
    if (!claimed) {
      throw new Error("MongoDB returned no document for an upsert.");
    }
    return claimed;
  }

  /** Whether an unexpired application has the external id. */
  async function hasExternalId(id: Binary, { tenantId, externalId }: Claim): Promise<boolean> {
    const filter = { _id: id, tenant_id: uuid(tenantId), external_id: externalId };
    const options = { projection: { _id: 1 }, ...limitsOf(applications) } as const;
    const all = { ...filter, ...notExpired(time) } as Document;
    return (await callDriver(() => applications.findOne(all, options))) !== null;
  }

  /** Makes all writes of an application fail that read it before, even if it does not exist yet. */
  async function fence(_id: Binary): Promise<void> {
    const tombstone = { _id, rev: 1, ...tombstoneAt(await now()) };
    const fenced = { $mergeObjects: ["$$ROOT", { rev: { $add: ["$rev", 1] } }] };
    const isNew = { $eq: [{ $type: "$rev" }, "missing"] };
    const update = [{ $replaceWith: { $cond: [isNew, { $literal: tombstone }, fenced] } }];
    const options = { upsert: true, ...limitsOf(applications) };
    await callDriver(() => applications.updateOne({ _id }, update, options));
  }

  return {
    async findOwners(wanted) {
      const byTenant = externalIdsByTenant(wanted);
      if (byTenant.size === 0) {
        return new Map<string, string>();
      }
      const among = Array.from(byTenant, ([tenantId, externalIds]) => ({
        tenant_id: uuid(tenantId),
        external_id: { $in: externalIds },
      }));
      const options = {
        projection: { tenant_id: 1, external_id: 1 },
        hint: searchIndexes.external_id,
        ...limitsOf(applications),
      } as const;
      type Owner = { _id: Binary; tenant_id: Binary; external_id: string };
      const filter = { $or: among, ...notExpired(time) };
      const found = await callDriver(() => applications.find<Owner>(filter, options).toArray());
      return new Map(
        found.map(({ _id, tenant_id, external_id }) => [
          ownerKey(fromUuid(tenant_id), external_id),
          fromUuid(_id),
        ]),
      );
    },

    async claim(wanted) {
      const { id, tenantId, externalId } = wanted;
      if (externalId === undefined) {
        return true;
      }
      const _id = claimId(tenantId, externalId);
      const me = uuid(id);
      for (;;) {
        const { owner, token } = await claimFree(_id, me);
        if (fromUuid(owner) === id) {
          return true;
        }
        if (await hasExternalId(owner, wanted)) {
          return false;
        }
        // The owner may be about to write: it gets a moment before its write is made to fail.
        await setTimeout(minPause + Math.random() * maxPause);
        await fence(owner);
        if (await hasExternalId(owner, wanted)) {
          return false;
        }
        const next = { $set: { owner: me, token: new ObjectId() } };
        const { matchedCount } = await callDriver(() =>
          claims.updateOne({ _id, token }, next, limitsOf(claims)),
        );
        if (matchedCount === 1) {
          return true;
        }
      }
    },
  };
}

/** In milliseconds. Without pauses, two applications could fence each other forever. */
const minPause = 5;
const maxPause = 10;

function externalIdsByTenant(claims: readonly Claim[]): Map<string, string[]> {
  const byTenant = new Map<string, string[]>();
  for (const { tenantId, externalId } of claims) {
    if (externalId !== undefined) {
      byTenant.set(tenantId, [...(byTenant.get(tenantId) ?? []), externalId]);
    }
  }
  return byTenant;
}

function claimId(tenantId: string, externalId: string): Binary {
  return new Binary(createHash("sha256").update(ownerKey(tenantId, externalId)).digest());
}
