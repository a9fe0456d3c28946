import {
  type Binary,
  BSON,
  type Collection,
  type Document,
  type Filter,
  type FindOptions,
} from "mongodb";
import { cacheCountsOf, createGenerationalCache } from "../../lib/cache.js";
import { waitForNextTick } from "../../lib/event-loop.js";
import { idFromBytes } from "../../lib/uuid.js";
import { isId } from "../../lib/uuid-text.js";
import type { ApplicationStore } from "../port/applications.js";
import { byKeyHash, importedFilter } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  fromUuid,
  type LogEntry,
  notExpired,
  type Stored,
  type Time,
  toBinary,
  toStored,
  uuid,
  withoutLog,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

/**
 * Reads unexpired records by id, in batches. Every authentication uses it. Later
 * reads from the same primary see at least the state that the lookup saw.
 */
export function createLookup<
  D extends Document & { readonly _id: Binary },
  R extends { id: string },
>(
  collection: Collection<D>,
  time: Time,
  freshRead: FreshRead,
  toRecord: (document: D) => R,
): (id: string) => Promise<R | undefined> {
  const decode = createDecoder(toRecord);
  const lookup = createBatcher(async (ids: readonly string[]) => {
    const filter = { _id: { $in: ids.map(uuid) }, ...notExpired(time) } as unknown as Filter<D>;
    // One more than can be found, so that one response contains all.
    const options = {
      projection: withoutLog,
      batchSize: ids.length + 1,
      raw: true,
      ...limitsOf(collection),
      ...freshRead(),
    };
    const documents = await callDriver(() =>
      collection.find<Uint8Array>(filter, options).toArray(),
    );
    const records = documents.map(decode);
    return new Map(records.map((record) => [record.id, record]));
  });
  return async (id) => (isId(id) ? lookup(id) : undefined);
}

/** A document as it was read, expired or a tombstone, too. */
export interface DocumentRead<R> extends Stored<R> {
  /** The time of the read. */
  readonly now: number;
  readonly last: readonly LogEntry[];
}

/** Reads documents by id together with the time, in batches. */
export function createDocumentLookup<
  D extends Document & { readonly _id: Binary; readonly rev: number },
  R,
>(
  collection: Collection<D>,
  time: Time,
  freshRead: FreshRead,
  toRecord: (document: D) => R,
): (id: string) => Promise<DocumentRead<R> | undefined> {
  const decode = createDecoder(toStored(toRecord));
  const lookup = createBatcher(async (ids: readonly string[]) => {
    const options = {
      projection: {
        _id: 0,
        document: { $unsetField: { field: "last", input: "$$ROOT" } },
        last: { $ifNull: ["$last", []] },
        now: time(),
      },
      batchSize: ids.length + 1,
      raw: true,
      ...limitsOf(collection),
      ...freshRead(),
    };
    const filter = { _id: { $in: ids.map(uuid) } } as unknown as Filter<D>;
    const found = await callDriver(() => collection.find<Uint8Array>(filter, options).toArray());
    const documents = found.map((bytes): DocumentRead<R> => {
      const { document, last, now } = BSON.deserialize(bytes, { raw: true });
      const entries = last.map((entry: Uint8Array) => BSON.deserialize(entry) as LogEntry);
      return { ...decode(document), last: entries, now: now.getTime() };
    });
    return new Map(documents.map((one) => [one.id, one]));
  });
  return async (id) => (isId(id) ? lookup(id) : undefined);
}

/** The size of each of the two generations of the cache, in bytes of documents. */
const cacheBytes = 4 * 1024 * 1024;

/** The cache admits one of this many decoded records. */
const admitOneIn = 4;

/** The position of the UUID in a document. MongoDB stores `_id` as the first field. */
const idOffset = 14;
const idLength = 16;

/**
 * Decodes records from BSON. Frequently read records are cached with their
 * bytes, and reused when the database returns the same bytes. Comparing costs a
 * fraction of decoding, and never returns stale data.
 */
export function createDecoder<D extends Document, R>(
  toRecord: (document: D) => R,
): (document: Uint8Array) => R {
  const cache = createGenerationalCache<{ bytes: Uint8Array; record: R }>(
    cacheBytes,
    admitOneIn,
    cacheCountsOf("records"),
  );
  const decode = (bytes: Uint8Array) => toRecord(BSON.deserialize(bytes) as D);

  return (document) => {
    const { buffer, byteOffset, length } = document;
    // If this is not an id, comparing the bytes still gives the right result.
    const id = idFromBytes(Buffer.from(buffer, byteOffset + idOffset, idLength));
    const cached = cache.get(id, length);
    if (cached && Buffer.compare(cached.bytes, document) === 0) {
      return cached.record;
    }
    if (!cache.shouldAdmit()) {
      return decode(document);
    }
    // Copied, because the bytes are a view of the entire response buffer.
    const bytes = new Uint8Array(document);
    return cache.add(id, length, { bytes, record: decode(bytes) }, length).record;
  };
}

interface BatcherOptions {
  /** The maximum number of keys per load. */
  readonly limit?: number;
  /** How long the next load waits for the response to the previous one, in milliseconds. */
  readonly maxWait?: number;
}

/**
 * Batches lookups of the same tick into one load. Lookups that start during a load share the next one, which
 * is sent when the response arrives or after `maxWait`. A load contains only lookups that started before it,
 * so each is as fresh as with a separate load.
 */
export function createBatcher<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  { limit = 256, maxWait = 2 }: BatcherOptions = {},
): (key: K) => Promise<V | undefined> {
  let gathering: { readonly keys: Set<K>; readonly found: Promise<ReadonlyMap<K, V>> } | undefined;
  let pending: { readonly response: Promise<unknown>; readonly sentAt: number } | undefined;

  function gather() {
    const keys = new Set<K>();
    const batch = { keys, found: ready().then(() => send()) };
    return batch;

    function send() {
      if (gathering === batch) {
        gathering = undefined;
      }
      const response = load([...keys]);
      const sent = { response, sentAt: performance.now() };
      pending = sent;
      return response.finally(() => {
        if (pending === sent) {
          pending = undefined;
        }
      });
    }
  }

  async function ready(): Promise<void> {
    const wait = pending ? pending.sentAt + maxWait - performance.now() : 0;
    if (pending && wait > 0) {
      await settledOrTimeout(pending.response, wait);
    }
    // Callers that just got a result may start their next lookup now.
    await waitForNextTick();
  }

  return async (key) => {
    if (!gathering || gathering.keys.size >= limit) {
      gathering = gather();
    }
    gathering.keys.add(key);
    return (await gathering.found).get(key);
  };
}

/** Resolves when a promise settles, or after a timeout in milliseconds. */
function settledOrTimeout(promise: Promise<unknown>, timeout: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeout);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    promise.then(end, end);
  });
}

/** Finds the applications that imported keys belong to, in batches. */
export function createFindByImportedKey(
  documents: Collection<ApplicationDocument>,
  freshRead: FreshRead,
  find: ApplicationStore["find"],
): ApplicationStore["findByImportedKey"] {
  const lookup = createBatcher((hashes: readonly string[]) =>
    findOwners(
      documents,
      hashes.map((text) => Buffer.from(text, "base64")),
      {},
      freshRead(),
    ),
  );
  const findUnexpired = (ids: Iterable<string>) => Promise.all(Array.from(ids, find));

  return async (hashes) => {
    const found = await Promise.all(hashes.map((bytes) => lookup(toBase64(bytes))));
    const owners = new Set(found.flatMap((owners) => owners ?? []));
    if (owners.size < 2) {
      const [owner] = owners;
      return owner;
    }
    const [owner, ...others] = (await findUnexpired(owners)).filter((one) => one !== undefined);
    return others.length > 0 ? undefined : owner?.id;
  };
}

/** For each hash in base64, the ids of its applications. More than one is a misconfiguration. */
export async function findOwners(
  documents: Collection<ApplicationDocument>,
  hashes: readonly Uint8Array[],
  among: Document = {},
  readOptions: FindOptions = {},
): Promise<Map<string, string[]>> {
  const filter = { ...importedFilter, "keys.hash": { $in: hashes.map(toBinary) }, ...among };
  const options = {
    projection: { "keys.hash": 1, "keys.imported": 1 },
    hint: byKeyHash,
    ...limitsOf(documents),
    ...readOptions,
  };
  const found = await callDriver(() => documents.find(filter, options).toArray());
  const owners = new Map<string, string[]>();
  for (const { _id, keys } of found) {
    for (const key of keys.filter(({ imported }) => imported)) {
      const text = toBase64(key.hash.value());
      owners.set(text, [...(owners.get(text) ?? []), fromUuid(_id)]);
    }
  }
  return owners;
}

export function toBase64(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("base64");
}
