/** Removes revoked sessions early, and counts expired ones. */
import type { Binary, Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationRecord } from "../port/records.js";
import type { SessionStore } from "../port/sessions.js";
import { byApplication, byAuthorizer, byExpiry } from "./collections.js";
import type { SessionDocument } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { type CheckpointDocument, checkpointBefore } from "./expirations.js";

/** Sessions per command, and commands per cleanup. */
const batchSize = 1_000;
const maxBatches = 1_000;

/** Removes sessions that were revoked with their application or authorizer, or by an epoch. */
export interface SessionCleanup {
  /**
   * Starts to remove all sessions that an application opened or authorized. With
   * epochs: those that it opened or authorized before them. Never fails.
   */
  start(applicationId: Binary, epochs?: Epochs): void;
  /** Stops, and resolves when nothing is running. */
  close(): Promise<void>;
}

/** Cleanup only saves disk space and reads, so callers do not wait for it and errors are ignored. */
export function createSessionCleanup(
  documents: Collection<SessionDocument>,
  waitForLog: () => Promise<void>,
): SessionCleanup {
  const running = new Set<Promise<void>>();
  let isClosed = false;

  async function cleanUp(sessions: Document, hint: Document) {
    // Continues after the previous batch, so that sessions opened since are not read again.
    let after: Document = {};
    for (let batch = 0; batch < maxBatches; batch++) {
      const found = await documents
        .find({ ...sessions, ...after }, { ...listing, hint, ...limitsOf(documents) })
        .toArray();
      const ids = found.map(({ _id }) => _id);
      await documents.deleteMany({ _id: { $in: ids } }, limitsOf(documents));
      if (ids.length < batchSize || isClosed) {
        return;
      }
      after = { _id: { $lt: ids.at(-1) } };
    }
  }

  async function cleanUpAll(applicationId: Binary, epochs: Epochs | undefined) {
    // Revoked sessions do not change any more, so the log then has all that they carry.
    await waitForLog();
    await cleanUp(openedBefore(applicationId, epochs), byApplication);
    if (!isClosed) {
      await cleanUp(authorizedBefore(applicationId, epochs), byAuthorizer);
    }
  }

  return {
    start(applicationId, epochs) {
      const cleaned = cleanUpAll(applicationId, epochs)
        .catch(() => {})
        .finally(() => running.delete(cleaned));
      running.add(cleaned);
    },

    async close() {
      isClosed = true;
      await Promise.all(running);
    },
  };
}

type Epochs = Pick<ApplicationRecord, "sessionEpoch" | "authorizationEpoch">;

/** Matches the sessions that an application opened before its epoch, or all of them. */
export function openedBefore(application_id: Binary, epochs: Epochs | undefined): Document {
  return { application_id, ...(epochs && { epoch: { $lt: epochs.sessionEpoch } }) };
}

/** Matches the sessions that an application authorized before its epoch, or all of them. */
export function authorizedBefore(authorized_by: Binary, epochs: Epochs | undefined): Document {
  return {
    authorized_by,
    ...(epochs && { authorization_epoch: { $lt: epochs.authorizationEpoch } }),
  };
}

const listing = {
  projection: { _id: 1 },
  sort: { _id: -1 },
  limit: batchSize,
  batchSize: batchSize + 1,
} as const;

interface ExpiredSessionsOptions {
  readonly documents: Collection<SessionDocument>;
  readonly checkpoints: Collection<CheckpointDocument>;
  /** The store's clock. */
  readonly now: () => MaybePromise<number>;
}

const _id = "sessions-expired";

/**
 * All instances share a checkpoint. The instance that moves it counts the
 * sessions that expired since the previous move. It moves the checkpoint first,
 * so that none is counted twice; if counting then fails, the count is lost.
 */
export function createExpiredCount(
  options: ExpiredSessionsOptions,
): SessionStore["drainExpiredCount"] {
  const { documents, checkpoints, now } = options;
  return async () => {
    const { moment, ...ids } = checkpointBefore(await now());
    const before = await callDriver(() =>
      checkpoints.findOneAndUpdate(
        { _id },
        { $max: { moment }, $setOnInsert: ids },
        { upsert: true, returnDocument: "before", ...limitsOf(checkpoints) },
      ),
    );
    if (!before || before.moment >= moment) {
      return 0;
    }
    const since = { expires_at: { $gt: before.moment, $lte: moment } };
    return callDriver(() =>
      documents.countDocuments(since, { hint: byExpiry, ...limitsOf(documents) }),
    );
  };
}
