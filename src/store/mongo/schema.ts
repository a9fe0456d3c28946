import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  Binary,
  type Db,
  type Document,
  type IndexDescriptionInfo,
  MongoServerError,
} from "mongodb";
import { applicationTypes } from "../../contract/grants.js";
import { managerPermissions } from "../port/applications.js";
import { expiredRetention } from "../port/records.js";
import type { CollectionSpec, Index } from "./collection-spec.js";
import { fromUuid } from "./documents.js";
import { trailCollections } from "./event-collections.js";
import { rateCountCollection } from "./rate-counts.js";

export const applicationsName = "applications";
export const sessionsName = "sessions";

export const byTenant = { tenant_id: 1, _id: -1 } as const;
export const byApplication = { application_id: 1, _id: -1 } as const;
export const byAuthorizer = { authorized_by: 1, _id: -1 } as const;
/** What counts the open sessions of an application, without reading them. */
export const byOpenSession = { application_id: 1, expires_at: 1, epoch: 1 } as const;
export const byExpiry = { expires_at: 1 } as const;
export const byForeignHash = { foreign_hashes: 1 } as const;
export const byEnd = { expires_at: 1, _id: 1 } as const;
export const byManaging = { tenant_id: 1, disabled: 1, expires_at: 1 } as const;

/** Matches the applications that can create and update others, where they are enabled and have not expired. */
export const managing = {
  $and: managerPermissions.map((permission) => ({ held_permissions: permission })),
};

const sweep: Index = {
  key: byExpiry,
  options: { expireAfterSeconds: expiredRetention / 1_000 },
};
/** What applications are searched by, each in the order that it is listed in. */
export const searches = {
  type: { tenant_id: 1, type: 1, _id: -1 },
  disabled: { tenant_id: 1, disabled: 1, _id: -1 },
  permission: { tenant_id: 1, held_permissions: 1, _id: -1 },
  name: { tenant_id: 1, folded_name: 1, _id: 1 },
  expires_at: { tenant_id: 1, expires_at: 1, _id: 1 },
  last_used_at: { tenant_id: 1, idle_since: 1, _id: 1 },
} as const;

/** Of most applications these say nothing. */
const rare: Readonly<Record<string, Document>> = {
  disabled: { disabled: true },
  expires_at: { expires_at: { $exists: true } },
};
const searching = Object.entries(searches).map(([name, key]): Index => {
  const partialFilterExpression = rare[name];
  return { key, options: partialFilterExpression ? { partialFilterExpression } : {} };
});

const listing: Index = { key: byTenant, options: {} };
const listingOfApplication: Index = { key: byApplication, options: {} };
const listingOfAuthorizer: Index = {
  key: byAuthorizer,
  options: { partialFilterExpression: { authorized_by: { $exists: true } } },
};
const countingOfApplication: Index = { key: byOpenSession, options: {} };
/** The applications that manage their tenant, of which there are few. */
const managers: Index = { key: byManaging, options: { partialFilterExpression: managing } };
/** Keys that were made elsewhere, which few applications have. */
const foreign: Index = { key: byForeignHash, options: { sparse: true } };
/** What ends when, in one order even where many end at the same moment; little of it has an end. */
const ends: Index[] = [
  { key: byEnd, options: { partialFilterExpression: { expires_at: { $exists: true } } } },
  { key: { key_expires_at: 1 }, options: { sparse: true } },
  { key: { "older_keys.expires_at": 1 }, options: { sparse: true } },
];

const strings = { bsonType: "array", items: { bsonType: "string" } };
const olderKeys = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["id", "hash", "created_at"],
    properties: {
      id: { bsonType: "binData" },
      hash: { bsonType: "binData" },
      created_at: { bsonType: "date" },
      expires_at: { bsonType: "date" },
      last_used_at: { bsonType: "date" },
      foreign: { bsonType: "bool" },
    },
  },
};
const conditions = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["attribute", "operator", "value"],
    properties: {
      attribute: { bsonType: "string" },
      operator: { bsonType: "string" },
      value: { bsonType: "string" },
    },
  },
};
const rules = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["priority", "conditions", "transform", "permissions"],
    properties: {
      description: { bsonType: "string" },
      priority: { bsonType: "number" },
      container: { bsonType: "string" },
      conditions,
      transform: { bsonType: "string" },
      permissions: strings,
    },
  },
};

/**
 * What the collections are like. Fields that are not named here are let
 * through: during an upgrade, instances of the next version write them too.
 * No index but that of `_id` is unique, so the collections shard by `_id`.
 */
const credentialCollections: readonly CollectionSpec[] = [
  {
    name: applicationsName,
    indexes: [sweep, listing, managers, foreign, ...ends, ...searching],
    // Whose a deleted document was, only its image from before tells.
    options: { changeStreamPreAndPostImages: { enabled: true } },
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "name", "folded_name", "type", "key_hash"],
        ...["permissions", "rules", "held_permissions", "created_at", "idle_since", "version"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        name: { bsonType: "string" },
        type: { enum: [...applicationTypes] },
        key_hash: { bsonType: "binData" },
        key_id: { bsonType: "binData" },
        key_created_at: { bsonType: "date" },
        key_expires_at: { bsonType: "date" },
        key_last_used_at: { bsonType: "date" },
        key_foreign: { bsonType: "bool" },
        older_keys: olderKeys,
        foreign_hashes: { bsonType: "array", items: { bsonType: "binData" } },
        permissions: strings,
        rules,
        held_permissions: strings,
        folded_name: { bsonType: "string" },
        idle_since: { bsonType: "date" },
        allowed_origins: strings,
        allowed_cidrs: strings,
        disabled: { bsonType: "bool" },
        session_epoch: { bsonType: ["int", "long"] },
        session_quota: { bsonType: "int" },
        created_at: { bsonType: "date" },
        created_by: { bsonType: "binData" },
        modified_at: { bsonType: "date" },
        modified_by: { bsonType: "binData" },
        expires_at: { bsonType: "date" },
        last_used_at: { bsonType: "date" },
        manager_lock: { bsonType: "objectId" },
        version: { bsonType: ["int", "long"] },
      },
    },
  },
  {
    name: sessionsName,
    indexes: [sweep, listing, listingOfApplication, listingOfAuthorizer, countingOfApplication],
    options: { changeStreamPreAndPostImages: { enabled: true } },
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "application_id", "epoch", "key_hash", "nonce_hash"],
        ...["permissions", "rules", "created_at", "expires_at"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        application_id: { bsonType: "binData" },
        epoch: { bsonType: ["int", "long"] },
        key_hash: { bsonType: "binData" },
        nonce_hash: { bsonType: "binData" },
        permissions: strings,
        rules,
        created_at: { bsonType: "date" },
        expires_at: { bsonType: "date" },
        authorized_at: { bsonType: "date" },
        authorized_by: { bsonType: "binData" },
        version: { bsonType: ["int", "long"] },
      },
    },
  },
];

const majority = { writeConcern: { w: "majority" } };

/** What all collections of the store are like. */
export function collectionsFor(eventRetention: number): CollectionSpec[] {
  return [...credentialCollections, ...trailCollections(eventRetention), rateCountCollection];
}

/** Makes collections and indexes, or changes those that differ; again, where another instance came between. */
export async function prepareSchema(db: Db, eventRetention: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const collection of collectionsFor(eventRetention)) {
        await prepareCollection(db, collection);
        await prepareIndexes(db, collection);
      }
      return;
    } catch (error) {
      if (attempt === 20 || !isRace(error)) {
        throw error;
      }
      await setTimeout(Math.random() * 20 * attempt);
    }
  }
}

/** The id that the database gave to the applications: another where they are dropped and made anew. */
export async function readDataId(db: Db): Promise<string> {
  const [applications] = await db
    .listCollections({ name: applicationsName }, { nameOnly: false })
    .toArray();
  const { uuid }: Document = applications?.info ?? {};
  if (!(uuid instanceof Binary)) {
    throw new Error("the collection of applications has no id");
  }
  return fromUuid(uuid);
}

async function prepareCollection(db: Db, spec: CollectionSpec): Promise<void> {
  const { name } = spec;
  const wanted = optionsOf(spec);
  const [existing] = await db.listCollections({ name }, { nameOnly: false }).toArray();
  if (!existing) {
    await db.createCollection(name, wanted);
  } else if (!hasOptions(existing.options, spec)) {
    await db.command({ collMod: name, ...wanted, ...majority });
  }
}

/** What a collection is made with. */
function optionsOf({ schema, options }: CollectionSpec): Document {
  return {
    validator: { $jsonSchema: schema },
    validationLevel: "strict",
    validationAction: "error",
    ...options,
  };
}

/** Whether a collection that is there was made with what it should be. */
export function hasOptions(options: Document = {}, spec: CollectionSpec): boolean {
  const wanted = optionsOf(spec);
  const current = Object.fromEntries(Object.keys(wanted).map((key) => [key, options[key]]));
  return isDeepStrictEqual(current, wanted);
}

/** The index of the same keys, among those that are there. */
export function sameIndex(
  existing: readonly IndexDescriptionInfo[],
  index: Index,
): IndexDescriptionInfo | undefined {
  const order = JSON.stringify(index.key);
  return existing.find(({ key }) => JSON.stringify(key) === order);
}

/** What an index that is there was made with. */
export function indexOptions({ v, key, name, background, ...options }: IndexDescriptionInfo) {
  return options;
}

/** Makes all that are missing in one go, which takes about as long as one of them. */
async function prepareIndexes(db: Db, { name, indexes }: CollectionSpec): Promise<void> {
  const collection = db.collection(name);
  const existing = await collection.indexes();
  const missing: Index[] = [];
  for (const index of indexes) {
    const found = sameIndex(existing, index);
    if (!found || (await isDropped(db, name, index, found))) {
      missing.push(index);
    }
  }
  if (missing.length > 0) {
    await collection.createIndexes(missing.map(({ key, options }) => ({ key, ...options })));
  }
}

/** Brings an index up to date, or drops it where it has to be made anew. */
async function isDropped(
  db: Db,
  name: string,
  { key, options }: Index,
  found: IndexDescriptionInfo,
): Promise<boolean> {
  const current = indexOptions(found);
  if (isDeepStrictEqual(current, options)) {
    return false;
  }
  if (isDeepStrictEqual({ ...current, ...options }, options)) {
    // Only the time to live differs, which changes in place.
    await db.command({ collMod: name, index: { keyPattern: key, ...options }, ...majority });
    return false;
  }
  await db.collection(name).dropIndex(found.name as string);
  return true;
}

const raceCodes = new Set<unknown>([
  26, // NamespaceNotFound
  27, // IndexNotFound
  48, // NamespaceExists
  85, // IndexOptionsConflict
  86, // IndexKeySpecsConflict
  112, // WriteConflict
  117, // ConflictingOperationInProgress
  276, // IndexBuildAborted
  12_587, // BackgroundOperationInProgressForNamespace
]);

function isRace(error: unknown): boolean {
  return error instanceof MongoServerError && raceCodes.has(error.code);
}
