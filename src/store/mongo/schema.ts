import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Binary, type Db, type Document, MongoServerError } from "mongodb";
import { expiredRetention } from "../store.js";
import { fromUuid } from "./documents.js";

export const applicationsName = "applications";
export const sessionsName = "sessions";

export const byTenant = { tenant_id: 1, _id: -1 } as const;
export const byExpiry = { expires_at: 1 } as const;

interface Index {
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly options: { readonly expireAfterSeconds?: number };
}

const sweep: Index = {
  key: byExpiry,
  options: { expireAfterSeconds: expiredRetention / 1_000 },
};
const listing: Index = { key: byTenant, options: {} };

const strings = { bsonType: "array", items: { bsonType: "string" } };
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
const collections = [
  {
    name: applicationsName,
    indexes: [sweep, listing],
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "name", "type", "key_hash", "permissions", "rules"],
        ...["created_at", "version"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        name: { bsonType: "string" },
        type: { enum: ["private", "public", "management"] },
        key_hash: { bsonType: "binData" },
        permissions: strings,
        rules,
        created_at: { bsonType: "date" },
        created_by: { bsonType: "binData" },
        modified_at: { bsonType: "date" },
        modified_by: { bsonType: "binData" },
        expires_at: { bsonType: "date" },
        version: { bsonType: ["int", "long"] },
      },
    },
  },
  {
    name: sessionsName,
    indexes: [sweep],
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "application_id", "key_hash", "nonce_hash"],
        ...["permissions", "rules", "created_at", "expires_at"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        application_id: { bsonType: "binData" },
        key_hash: { bsonType: "binData" },
        nonce_hash: { bsonType: "binData" },
        permissions: strings,
        rules,
        created_at: { bsonType: "date" },
        expires_at: { bsonType: "date" },
        authorized_at: { bsonType: "date" },
        authorized_by: { bsonType: "binData" },
      },
    },
  },
] as const;

const majority = { writeConcern: { w: "majority" } };

/** Makes collections and indexes, or changes those that differ; again, where another instance came between. */
export async function prepareSchema(db: Db): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const { name, schema, indexes } of collections) {
        await prepareCollection(db, name, schema);
        for (const index of indexes) {
          await prepareIndex(db, name, index);
        }
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

async function prepareCollection(db: Db, name: string, schema: Document): Promise<void> {
  const wanted = {
    validator: { $jsonSchema: schema },
    validationLevel: "strict",
    validationAction: "error",
    // Whose a deleted document was, only its image from before tells.
    changeStreamPreAndPostImages: { enabled: true },
  };
  const [existing] = await db.listCollections({ name }, { nameOnly: false }).toArray();
  if (!existing) {
    await db.createCollection(name, wanted);
    return;
  }
  const options: Document = existing.options ?? {};
  const current = Object.fromEntries(Object.keys(wanted).map((key) => [key, options[key]]));
  if (!isDeepStrictEqual(current, wanted)) {
    await db.command({ collMod: name, ...wanted, ...majority });
  }
}

async function prepareIndex(db: Db, name: string, { key, options }: Index): Promise<void> {
  const collection = db.collection(name);
  const order = JSON.stringify(key);
  const existing = (await collection.indexes()).find(
    (index) => JSON.stringify(index.key) === order,
  );
  if (existing) {
    const { v, key: _, name: old, background, ...current } = existing;
    if (isDeepStrictEqual(current, options)) {
      return;
    }
    if (isDeepStrictEqual({ ...current, ...options }, options)) {
      // Only the time to live differs, which changes in place.
      await db.command({ collMod: name, index: { keyPattern: key, ...options }, ...majority });
      return;
    }
    await collection.dropIndex(old as string);
  }
  await collection.createIndex({ ...key }, options);
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
