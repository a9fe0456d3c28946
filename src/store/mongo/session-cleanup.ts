import type { Binary, Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import type { SessionStore } from "../port/store.js";
import { byApplication, byAuthorizer, byExpiry } from "./collections.js";
import type { SessionDocument } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";
import { type CheckpointDocument, checkpointBefore } from "./expirations.js";

/** The end of sessions that are dead already; see {@link createSessionCleanup}. */
export const cleanupMarker = new Date(0);

/** How many sessions one command may end, and how many commands a sweep may take. */
const batchSize = 1_000;
const maxBatches = 1_000;

/** Clears away sessions that are dead with their application or authorizer, or by an epoch. */
export interface SessionCleanup {
  /**
   * Starts to clear away all sessions that an application opened or authorized,
   * or of those that it opened the ones from before an epoch. It never fails.
   */
  start(applicationId: Binary, epoch?: number): void;
  /** Resolves when no sweep is under way. */
  close(): Promise<void>;
}

/**
 * A dead session opens nothing, and goes when its time is over. To sweep only
 * keeps it from filling the disk, and lists, until then, so whoever made it
 * dead does not wait, and nobody is told where it fails.
 *
 * It does not delete, for the feed would tell of each of them. It lets them
 * have expired long ago: the server then deletes them, and the feed leaves
 * out both, of which nobody has to hear (see change-events.ts).
 */
export function createSessionCleanup(documents: Collection<SessionDocument>): SessionCleanup {
  const underWay = new Set<Promise<void>>();
  let isClosed = false;

  async function sweep(sessions: Document, hint: Document) {
    const dead = { ...sessions, expires_at: { $gt: cleanupMarker } };
    let after: Document = {};
    for (let round = 0; round < maxBatches && !isClosed; round++) {
      const found = await documents
        .find({ ...dead, ...after }, { ...listing, hint, ...limits })
        .toArray();
      const ids = found.map(({ _id }) => _id);
      await documents.updateMany({ _id: { $in: ids } }, ended, limits);
      if (ids.length < batchSize) {
        return;
      }
      after = { _id: { $lt: ids.at(-1) } };
    }
  }

  async function sweepAll(applicationId: Binary, epoch: number | undefined) {
    await sweep(revokedSessions(applicationId, epoch), byApplication);
    if (epoch === undefined) {
      await sweep({ authorized_by: applicationId }, byAuthorizer);
    }
  }

  return {
    start(applicationId, epoch) {
      const swept = sweepAll(applicationId, epoch)
        .catch(() => {})
        .finally(() => underWay.delete(swept));
      underWay.add(swept);
    },

    async close() {
      isClosed = true;
      await Promise.all(underWay);
    },
  };
}

/** Matches the sessions of an application from before an epoch, or all where there is none. */
export function revokedSessions(application_id: Binary, epoch: number | undefined): Document {
  return {
    application_id,
    ...(epoch !== undefined && { epoch: { $lt: epoch } }),
  };
}

const listing = {
  projection: { _id: 1 },
  sort: { _id: -1 },
  limit: batchSize,
  batchSize: batchSize + 1,
} as const;

const ended = { $set: { expires_at: cleanupMarker } };

interface ExpiredSessionsOptions {
  readonly documents: Collection<SessionDocument>;
  readonly marks: Collection<CheckpointDocument>;
  /** The store's clock. */
  readonly now: () => MaybePromise<number>;
}

const _id = "sessions-expired";

/**
 * Counts by a mark that all instances share: whoever moves it counts what
 * expired since it was moved before. It is moved first, so that none counts
 * twice; what the one that moved it fails to count is lost.
 */
export function createExpiredCount(options: ExpiredSessionsOptions): SessionStore["takeExpired"] {
  const { documents, marks, now } = options;
  return async () => {
    const { moment, ...place } = checkpointBefore(await now());
    const mark = await callDriver(() =>
      marks.findOneAndUpdate(
        { _id },
        { $max: { moment }, $setOnInsert: place },
        { upsert: true, returnDocument: "before", ...limits },
      ),
    );
    if (!mark || mark.moment >= moment) {
      return 0;
    }
    const since = { expires_at: { $gt: mark.moment, $lte: moment } };
    return callDriver(() => documents.countDocuments(since, { hint: byExpiry, ...limits }));
  };
}
