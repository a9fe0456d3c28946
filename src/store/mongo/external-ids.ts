/** Keeps external ids unique in a tenant. A unique index on them would prevent sharding by `_id`. */
import { createHash } from "node:crypto";
import { Binary, type ClientSession, type Collection, ObjectId } from "mongodb";
import type { ApplicationFields } from "../port/records.js";
import { type CollectionSpec, searchIndexes } from "./collections.js";
import { type ApplicationDocument, fromUuid, notExpired, type Time, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

/** An application whose external id, if any, no other unexpired application of its tenant may have. */
export type Claim = Pick<ApplicationFields, "id" | "tenantId" | "externalId">;

/** Maps each tenant with an external id to the unexpired application that has it. See {@link ownerKey}. */
export type ExternalIdOwners = Map<string, string>;

export interface ExternalIds {
  findOwners(claims: readonly Claim[], session?: ClientSession): Promise<ExternalIdOwners>;

  /**
   * Returns the owners in a transaction that is about to write the applications.
   * Of concurrent transactions with the same external id, only one can commit.
   * Its only writes are locks, which have no effect if they are committed alone.
   */
  lock(claims: readonly Claim[], session: ClientSession): Promise<ExternalIdOwners>;
}

export function ownerKey(tenantId: string, externalId: string): string {
  return `${tenantId} ${externalId}`;
}

/** Whether another application has the external id of this one. */
export function isTaken({ id, tenantId, externalId }: Claim, owners: ExternalIdOwners): boolean {
  const owner = externalId === undefined ? undefined : owners.get(ownerKey(tenantId, externalId));
  return owner !== undefined && owner !== id;
}

interface LockDocument {
  /** The hash of tenant and external id. */
  readonly _id: Binary;
  /** Differs in each transaction, because writing the same value is no conflict. */
  readonly holder: ObjectId;
  readonly expires_at: Date;
}

export const externalIdLocksName = "external_id_locks";

export const externalIdLockCollection: CollectionSpec = {
  name: externalIdLocksName,
  indexes: [{ key: { expires_at: 1 }, options: { expireAfterSeconds: 0 } }],
  schema: {
    bsonType: "object",
    required: ["_id", "holder", "expires_at"],
    properties: {
      _id: { bsonType: "binData" },
      holder: { bsonType: "objectId" },
      expires_at: { bsonType: "date" },
    },
  },
};

/** Milliseconds; longer than any transaction. */
const lockLifetime = 10 * 60_000;

interface ExternalIdParts {
  readonly applications: Collection<ApplicationDocument>;
  readonly locks: Collection<LockDocument>;
  readonly time: Time;
}

export function createExternalIds({ applications, locks, time }: ExternalIdParts): ExternalIds {
  async function findOwners(claims: readonly Claim[], session?: ClientSession) {
    const byTenant = externalIdsByTenant(claims);
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
      ...limitsOf(applications, session),
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
  }

  return {
    findOwners,

    async lock(claims, session) {
      const holder = new ObjectId();
      const expires_at = { $add: [time(), lockLifetime] };
      const writes = claims.flatMap(({ tenantId, externalId }) => {
        if (externalId === undefined) {
          return [];
        }
        const filter = { _id: lockId(tenantId, externalId) };
        return [
          { updateOne: { filter, update: [{ $set: { holder, expires_at } }], upsert: true } },
        ];
      });
      if (writes.length > 0) {
        await callDriver(() => locks.bulkWrite(writes, limitsOf(locks, session)));
      }
      return findOwners(claims, session);
    },
  };
}

function externalIdsByTenant(claims: readonly Claim[]): Map<string, string[]> {
  const byTenant = new Map<string, string[]>();
  for (const { tenantId, externalId } of claims) {
    if (externalId !== undefined) {
      byTenant.set(tenantId, [...(byTenant.get(tenantId) ?? []), externalId]);
    }
  }
  return byTenant;
}

function lockId(tenantId: string, externalId: string): Binary {
  return new Binary(createHash("sha256").update(ownerKey(tenantId, externalId)).digest());
}
