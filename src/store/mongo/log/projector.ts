/** Fills the log from the writes of the records, on one instance at a time. */
import { type Collection, type Db, MongoServerError } from "mongodb";
import { createSignal } from "../../../lib/concurrency.js";
import { applicationsName, eventsName, sessionsName } from "../collections.js";
import { type EventDocument, fromUuid, type LogEntry } from "../documents.js";
import { callDriver, insertNew, limitsOf } from "../driver-call.js";
import {
  clusterTimeOf,
  clusterTimeOfOffset,
  offsetOf,
  timestampOf,
} from "../feeds/change-stream.js";
import type { ResponseDocuments } from "../responses.js";
import { type LoggedWrite, openLoggedWrites } from "./entries.js";
import type { Marks } from "./marks.js";
import {
  type Lease,
  type LogPosition,
  type PositionRead,
  positionAt,
  readOperationTime,
} from "./position.js";
import { purgeTombstones } from "./tombstones.js";

interface ProjectorParts {
  readonly db: Db;
  readonly lease: Lease;
  readonly marks: Marks;
  readonly responses: Pick<ResponseDocuments, "store">;
  readonly warn: (message: string) => void;
  /** Called when the position was recorded. */
  readonly onProgress: (position: PositionRead) => void;
}

/** Writes that wait to be added. The stream is not read further beyond that. */
const maxQueue = 1_000;

/** Milliseconds between renewals of the lease. */
const renewalInterval = 1_000;

/** Milliseconds between removals of tombstones. */
const purgeInterval = 60_000;

/** Ids of entries that are known to be in the log. */
const rememberedIds = 10_000;

export interface Projector {
  /** Whether this instance has added an entry lately. */
  hasAdded(id: string): boolean;
  /** Fills the log from a position until another instance takes over, or until the signal aborts. */
  run(from: LogPosition, signal: AbortSignal): Promise<void>;
}

export function createProjector(parts: ProjectorParts): Projector {
  const { db, lease, marks, responses, warn, onProgress } = parts;
  const events: Collection<EventDocument> = db.collection(eventsName);
  const added = new Set<string>();

  /** Adds the responses first: an event in the log implies that its response is stored. */
  async function add(entries: readonly LogEntry[]): Promise<void> {
    const fresh = new Map<string, LogEntry>();
    for (const entry of entries) {
      const id = fromUuid(entry.id);
      if (!added.has(id)) {
        fresh.set(id, entry);
      }
    }
    const all = [...fresh.values()];
    await responses.store(all.flatMap(({ response }) => response ?? []));
    await insertNew(
      events,
      all.flatMap(({ event }) => event ?? []),
    );
    for (const id of fresh.keys()) {
      added.add(id);
    }
    for (const id of [...added].slice(0, Math.max(0, added.size - rememberedIds))) {
      added.delete(id);
    }
  }

  /** Follows the stream. Throws when it ends. */
  async function follow(from: LogPosition, signal: AbortSignal): Promise<void> {
    const start = offsetOf(clusterTimeOf(from.complete), 0);
    const stream = openLoggedWrites(db, start);
    const arrived = createSignal();
    const taken = createSignal();
    let queue: LoggedWrite[] = [];
    let passed = clusterTimeOfOffset(start);
    let failure: { readonly reason: unknown } | undefined;
    let isOver = false;

    async function read(): Promise<void> {
      while (!isOver) {
        const { event, passed: reached } = await callDriver(() => stream.next());
        if (event) {
          queue.push(event);
        }
        passed = clusterTimeOfOffset(reached);
        arrived.notify();
        if (queue.length >= maxQueue) {
          await taken.wait(renewalInterval);
        }
      }
    }

    const reading = read().catch((reason) => {
      failure = { reason };
      arrived.notify();
    });
    const stop = () => arrived.notify();
    signal.addEventListener("abort", stop);
    let renewedAt = performance.now();
    let purgedAt = renewedAt;
    let hasMoved = false;
    try {
      while (!signal.aborted && !failure) {
        const [batch, reached] = [queue, passed];
        queue = [];
        taken.notify();
        await add(batch.flatMap(({ last }) => last ?? []));
        await marks.confirm(batch.flatMap(({ mark }) => mark ?? []));
        const hasStarted: boolean = !hasMoved && reached > clusterTimeOfOffset(start);
        if (hasStarted || performance.now() - renewedAt > renewalInterval) {
          hasMoved ||= hasStarted;
          renewedAt = performance.now();
          const position = await lease.renew(positionAt(timestampOf(reached)));
          if (!position) {
            return;
          }
          onProgress(position);
          if (performance.now() - purgedAt > purgeInterval) {
            purgedAt = performance.now();
            await purgeTombstones(db, loggedBefore(position));
          }
        }
        if (queue.length === 0) {
          await arrived.wait(renewalInterval);
        }
      }
    } finally {
      isOver = true;
      taken.notify();
      signal.removeEventListener("abort", stop);
      await stream.close();
      await reading;
      await stream.close();
    }
    if (failure) {
      throw failure.reason;
    }
  }

  /**
   * If the oplog does not reach back to the position, the documents still have the entries that
   * were not in the log. The start of the stream is read before them, so that nothing is between.
   */
  async function rebuild(from: LogPosition): Promise<LogPosition> {
    warn(
      "The oplog of MongoDB no longer has all changes that the audit log lacks. They are read from the records.",
    );
    const start = positionAt(await readOperationTime(db));
    for (const name of [applicationsName, sessionsName]) {
      await addFrom(name, loggedBefore(from));
    }
    await lease.renew(start);
    return start;
  }

  async function addFrom(name: string, since: Date): Promise<void> {
    const documents = db.collection<{ readonly last: readonly LogEntry[] }>(name);
    const options = { projection: { last: 1 }, batchSize: 100, ...limitsOf({ db }) };
    const found = documents.find({ "last.at": { $gte: since } }, options);
    let batch: LogEntry[] = [];
    for await (const { last } of found) {
      batch.push(...last);
      if (batch.length >= maxQueue) {
        await add(batch);
        await lease.renew(undefined);
        batch = [];
      }
    }
    await add(batch);
  }

  return {
    hasAdded: (id) => added.has(id),

    async run(from, signal) {
      try {
        await follow(from, signal);
      } catch (error) {
        if (!isHistoryLost(error)) {
          throw error;
        }
        await follow(await rebuild(from), signal);
      }
    },
  };
}

/**
 * The time of an entry, by the clock of the primary that read its record, may be before the cluster
 * time of its write by this many milliseconds: the time that a write may take and the difference of clocks.
 */
const logMargin = 60_000;

/** The log has all entries before this time. */
export const loggedBefore = ({ complete_at }: LogPosition): Date =>
  new Date(complete_at.getTime() - logMargin);

/** Codes of a server whose oplog does not contain the start of a stream. */
const historyLost = new Set<unknown>([
  136, // CappedPositionLost
  260, // InvalidResumeToken
  280, // ChangeStreamFatalError
  286, // ChangeStreamHistoryLost
]);

function isHistoryLost(error: unknown): boolean {
  return error instanceof MongoServerError && historyLost.has(error.code);
}
