/** Creates the collections and indexes, and updates the ones that differ from their declaration. */
import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  Binary,
  type Db,
  type Document,
  type IndexDescriptionInfo,
  MongoServerError,
} from "mongodb";
import {
  applicationsName,
  type CollectionSpec,
  credentialCollections,
  eventCollections,
  type Index,
} from "./collections.js";
import { fromUuid } from "./documents.js";
import { claimCollection } from "./external-ids.js";
import { markCollection } from "./log/entries.js";
import { createPosition, logPositionCollection } from "./log/position.js";
import { rateCountCollection } from "./rate-counts.js";

const majority = { writeConcern: { w: "majority" } };

/** Stored as the title of every validator. Changes when existing documents cannot be read any more. */
const schemaTitle = "Latchkey schema 4";

/** The database has documents in the format of another version. */
export class IncompatibleSchema extends Error {}

export function collectionsFor(eventRetention: number): CollectionSpec[] {
  return [
    ...credentialCollections,
    claimCollection,
    logPositionCollection,
    markCollection,
    ...eventCollections(eventRetention),
    rateCountCollection,
  ];
}

/** Several instances may do this at once: on a conflict, it starts again. */
export async function prepareSchema(db: Db, eventRetention: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const collection of collectionsFor(eventRetention)) {
        await prepareCollection(db, collection);
        await prepareIndexes(db, collection);
      }
      await createPosition(db);
      return;
    } catch (error) {
      if (attempt === 20 || !isConcurrentChange(error)) {
        throw error;
      }
      await setTimeout(Math.random() * 20 * attempt);
    }
  }
}

/** Returns the id that MongoDB gave to the applications collection. It changes if the collection is recreated. */
export async function readDataId(db: Db): Promise<string> {
  const [applications] = await db
    .listCollections({ name: applicationsName }, { nameOnly: false })
    .toArray();
  const { uuid }: Document = applications?.info ?? {};
  if (!(uuid instanceof Binary)) {
    throw new Error("the applications collection has no UUID");
  }
  return fromUuid(uuid);
}

async function prepareCollection(db: Db, spec: CollectionSpec): Promise<void> {
  const { name } = spec;
  const expected = optionsOf(spec);
  const [existing] = await db.listCollections({ name }, { nameOnly: false }).toArray();
  if (!existing) {
    await db.createCollection(name, expected);
  } else if (!hasOptions(existing.options, spec)) {
    assertVersion(name, existing.options);
    await db.command({ collMod: name, ...expected, ...majority });
  }
}

/** A validator without a schema was not created by Latchkey. */
function assertVersion(name: string, options: Document = {}): void {
  const schema: Document | undefined = options.validator?.$jsonSchema;
  if (schema && schema.title !== schemaTitle) {
    throw new IncompatibleSchema(`the collection ${name} was created by another version`);
  }
}

function optionsOf({ schema }: CollectionSpec): Document {
  return {
    validator: { $jsonSchema: { title: schemaTitle, ...schema } },
    validationLevel: "strict",
    validationAction: "error",
  };
}

/** Whether an existing collection has the declared options. */
export function hasOptions(options: Document = {}, spec: CollectionSpec): boolean {
  const expected = optionsOf(spec);
  const current = Object.fromEntries(Object.keys(expected).map((key) => [key, options[key]]));
  return isDeepStrictEqual(current, expected);
}

/** Finds the existing index with the same keys. */
export function findIndex(
  existing: readonly IndexDescriptionInfo[],
  index: Index,
): IndexDescriptionInfo | undefined {
  const order = JSON.stringify(index.key);
  return existing.find(({ key }) => JSON.stringify(key) === order);
}

export function indexOptions({ v, key, name, background, ...options }: IndexDescriptionInfo) {
  return options;
}

/** Creates all missing indexes in one command, which takes about as long as creating one. */
async function prepareIndexes(db: Db, { name, indexes }: CollectionSpec): Promise<void> {
  const collection = db.collection(name);
  const existing = await collection.indexes();
  const missing: Index[] = [];
  for (const index of indexes) {
    const found = findIndex(existing, index);
    if (!found || (await updateOrDrop(db, name, index, found)) === "dropped") {
      missing.push(index);
    }
  }
  if (missing.length > 0) {
    await collection.createIndexes(missing.map(({ key, options }) => ({ key, ...options })));
  }
}

/** Updates an index in place, or drops it if it must be rebuilt. */
async function updateOrDrop(
  db: Db,
  name: string,
  { key, options }: Index,
  found: IndexDescriptionInfo,
): Promise<"current" | "dropped"> {
  const current = indexOptions(found);
  if (isDeepStrictEqual(current, options)) {
    return "current";
  }
  if (isDeepStrictEqual({ ...current, ...options }, options)) {
    // Only the time to live differs, which can change in place.
    await db.command({ collMod: name, index: { keyPattern: key, ...options }, ...majority });
    return "current";
  }
  await db.collection(name).dropIndex(found.name as string);
  return "dropped";
}

/** Errors caused by another instance that prepares the schema at the same time. */
const concurrentChangeCodes = new Set<unknown>([
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

function isConcurrentChange(error: unknown): boolean {
  return error instanceof MongoServerError && concurrentChangeCodes.has(error.code);
}
