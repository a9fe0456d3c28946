import {
  type Binary,
  BSON,
  type Collection,
  type Document,
  type Filter,
  ReadConcern,
} from "mongodb";
import { createGenerationalCache } from "../../lib/cache.js";
import { waitForNextTick } from "../../lib/event-loop.js";
import { idFromBytes, isId } from "../../lib/uuid.js";
import { cacheCounts } from "../../telemetry/metrics/caches.js";
import type { CallerRecords, ChangeCaller } from "../port/audit.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  type SessionDocument,
  toApplication,
  toSession,
  uuid,
} from "./documents.js";
import { callDriver, limits } from "./driver-call.js";
import { notExpired, type Time } from "./time.js";

/**
 * Reads what is alive by id, many at a time: the way of every authentication.
 * Whoever is let in by it sees, in whatever it reads later from the same
 * primary, at least what the look-up could see.
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
    // One more than there can be, so that all come in one answer.
    const options = { batchSize: ids.length + 1, raw: true, ...limits, ...freshRead() };
    const documents = await callDriver(() =>
      collection.find<Uint8Array>(filter, options).toArray(),
    );
    const records = documents.map(decode);
    return new Map(records.map((record) => [record.id, record]));
  });
  return async (id) => (isId(id) ? lookup(id) : undefined);
}

/** Bytes of documents whose records each of two generations may keep. */
const cacheBytes = 4 * 1024 * 1024;

/** Of so many records made one is kept. */
const admitOneIn = 4;

/** Where a UUID is in a document that starts, as all do in MongoDB, with its `_id`. */
const idOffset = 14;
const idLength = 16;

/**
 * Makes records of documents as they came from the database, in BSON. Those
 * that are read often are kept with the bytes that they were made of, and
 * serve again when the very same bytes come: to compare costs a fraction of
 * decoding, and can never answer what the database did not say just now.
 */
export function createDecoder<D extends Document, R>(
  toRecord: (document: D) => R,
): (document: Uint8Array) => R {
  const generations = createGenerationalCache<{ bytes: Uint8Array; record: R }>(
    cacheBytes,
    admitOneIn,
    cacheCounts.records,
  );
  const make = (bytes: Uint8Array) => toRecord(BSON.deserialize(bytes) as D);

  return (document) => {
    const { buffer, byteOffset, length } = document;
    // It need not be an id: only the bytes decide.
    const id = idFromBytes(Buffer.from(buffer, byteOffset + idOffset, idLength));
    const kept = generations.get(id, length);
    if (kept && Buffer.compare(kept.bytes, document) === 0) {
      return kept.record;
    }
    if (!generations.shouldAdmit()) {
      return make(document);
    }
    // Copied, as the bytes are a part of a whole answer that must not be kept with them.
    const bytes = new Uint8Array(document);
    return generations.add(id, length, { bytes, record: make(bytes) }, length).record;
  };
}

interface BatcherOptions {
  /** How many keys a load may have. */
  readonly limit?: number;
  /** How long after a load was sent the next one is held back for its answer, in milliseconds. */
  readonly maxWait?: number;
}

/**
 * Makes a lookup by key of a load by many keys. Lookups that start in one turn
 * of the event loop share one load, and so do those that start while the load
 * before is under way: as many as have come when it is answered, or when that
 * has taken too long. A load holds only lookups that started before it, so
 * each is as fresh as a load of its own; a lone lookup waits for nothing but
 * the end of its turn.
 */
export function createBatcher<K, V>(
  load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  { limit = 256, maxWait = 2 }: BatcherOptions = {},
): (key: K) => Promise<V | undefined> {
  let gathering: { readonly keys: Set<K>; readonly found: Promise<ReadonlyMap<K, V>> } | undefined;
  let underWay: { readonly answer: Promise<unknown>; readonly sentAt: number } | undefined;

  function gather() {
    const keys = new Set<K>();
    const batch = { keys, found: ready().then(() => send()) };
    return batch;

    function send() {
      if (gathering === batch) {
        gathering = undefined;
      }
      const answer = load([...keys]);
      const sent = { answer, sentAt: performance.now() };
      underWay = sent;
      return answer.finally(() => {
        if (underWay === sent) {
          underWay = undefined;
        }
      });
    }
  }

  async function ready(): Promise<void> {
    const wait = underWay ? underWay.sentAt + maxWait - performance.now() : 0;
    if (underWay && wait > 0) {
      await settledOrTimeout(underWay.answer, wait);
    }
    // Whoever was answered by it may look up the next at once.
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

/** Resolves when a promise is settled, or after a number of milliseconds. */
function settledOrTimeout(promise: Promise<unknown>, longest: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, longest);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    promise.then(end, end);
  });
}

/** The latest that the primary knows. One that was replaced cannot commit what rests on it. */
const latest = { readConcern: new ReadConcern("local") };

/** Reads the caller of a change as it is now. */
export function createFindCaller(
  applications: Collection<ApplicationDocument>,
  sessions: Collection<SessionDocument>,
  time: Time,
): (caller: ChangeCaller) => Promise<CallerRecords | undefined> {
  const findApplication = createLookup(applications, time, () => latest, toApplication);
  const findSession = createLookup(sessions, time, () => latest, toSession);
  return async ({ applicationId, sessionId, authorizerId = applicationId }) => {
    if (sessionId === undefined) {
      const application = await findApplication(applicationId);
      return application && { application };
    }
    const ids = [applicationId, authorizerId];
    const [session, ...applications] = await Promise.all([
      findSession(sessionId),
      ...ids.map(findApplication),
    ]);
    const found = session && withApplications(session, (id) => applications[ids.indexOf(id)]);
    return isRevoked(found) ? undefined : found;
  };
}
