/** Adds events for applications and keys that expire soon or have expired. */
import type { AggregateOptions, Binary, Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { nilUuid } from "../../lib/uuid.js";
import { isManager } from "../port/applications.js";
import {
  checkpointName,
  type EventStore,
  type Expiration,
  type ExpirationTimes,
  firstCheckpoint,
  isFarBehind,
  isReportable,
  isUsableCheckpoint,
} from "../port/events.js";
import { findOtherManager } from "./application-queries.js";
import { byExpiryAndId } from "./collections.js";
import type { EventDocument } from "./documents.js";
import { type ApplicationDocument, fromUuid, uuid } from "./documents.js";
import { callDriver, insertIfAbsent, insertNew, limitsOf } from "./driver-call.js";
import { type EventIds, toEventDocument } from "./event-documents.js";

export interface CheckpointDocument extends Checkpoint {
  readonly _id: string;
  /** Events of the expirations before the checkpoint, until they are added. */
  readonly pending?: readonly EventDocument[];
}

export interface ExpirationEventsOptions {
  readonly applications: Collection<ApplicationDocument>;
  readonly checkpoints: Collection<CheckpointDocument>;
  readonly documents: Collection<EventDocument>;
  readonly eventIds: EventIds;
  /** The store's clock. */
  readonly now: () => MaybePromise<number>;
}

/** Expirations per checkpoint. */
const batchSize = 200;

/**
 * Adds events for upcoming expirations. A checkpoint for each lead time marks
 * the last expiration processed. It moves with the events in it, so that only
 * one of several instances reports them, and any instance can then add them. An expiry before the
 * checkpoint belongs to a credential that was created, or whose expiry was moved
 * earlier, within the lead time.
 */
export function createExpirationEvents(
  options: ExpirationEventsOptions,
): EventStore["addExpirationEvents"] {
  const { applications, checkpoints, documents, eventIds, now } = options;

  /** Adds what a checkpoint contains. Another instance may do the same. */
  async function addPending({ _id, pending = [] }: CheckpointDocument): Promise<void> {
    const [first] = pending;
    if (first) {
      await insertNew(documents, pending);
      const isPending = { _id, "pending.0._id": first._id };
      const added = { $unset: { pending: "" } } as const;
      await callDriver(() => checkpoints.updateOne(isPending, added, limitsOf(checkpoints)));
    }
  }

  async function readDue(leadTime: number) {
    const _id = checkpointName(leadTime);
    const current = await now();
    const written = await callDriver(() => checkpoints.findOne({ _id }, limitsOf(checkpoints)));
    if (written) {
      await addPending(written);
    }
    const isUsable = written && isUsableCheckpoint(written.moment.getTime(), leadTime, current);
    const checkpoint = isUsable ? written : undefined;
    const after = checkpoint ?? checkpointBefore(firstCheckpoint(leadTime, current));
    const range = { after, until: new Date(current + leadTime), limit: batchSize };
    const found = await findExpirations(applications, range);
    return { _id, current, written, checkpoint, after, found };
  }

  /** Whether another application manages the tenant after one has expired. */
  async function isManagedAfter({
    tenantId,
    applicationId: id,
    at,
  }: FoundExpiration["expiration"]): Promise<boolean> {
    const isLater = { $or: [{ expires_at: null }, { expires_at: { $gt: new Date(at) } }] };
    return (await findOtherManager(applications, { tenantId, id }, isLater)) !== null;
  }

  /** Moves a checkpoint. Returns false if another instance has moved it. */
  async function move(
    written: CheckpointDocument | null,
    { _id, moment, application_id, key_id, pending = [] }: CheckpointDocument,
  ): Promise<boolean> {
    const fields = { moment, application_id, key_id };
    const events = pending.length > 0 && { pending };
    if (!written) {
      const first = { _id, ...fields, ...events };
      return insertIfAbsent(checkpoints, first);
    }
    const unchanged = {
      _id,
      moment: written.moment,
      application_id: written.application_id,
      key_id: written.key_id,
      pending: { $exists: false },
    };
    const { matchedCount } = await callDriver(() =>
      checkpoints.updateOne(unchanged, { $set: { ...fields, ...events } }, limitsOf(checkpoints)),
    );
    return matchedCount === 1;
  }

  return async (leadTime, toEvents) => {
    for (;;) {
      const { _id, current, written, checkpoint, after, found } = await readDue(leadTime);
      const isBehind = !checkpoint || isFarBehind(checkpoint.moment.getTime(), leadTime, current);
      if (found.length === 0 && !isBehind) {
        return 0;
      }
      const due = found.filter(({ times }) => isReportable(times, leadTime, current));
      const expirations: Expiration[] = [];
      for (const { expiration, isManager } of due) {
        const leavesNoManager = isManager && !(await isManagedAfter(expiration));
        expirations.push({ ...expiration, leavesNoManager });
      }
      const pending = expirations
        .flatMap(toEvents)
        .map((event) => toEventDocument({ ...event, id: eventIds.next(), at: current }));
      const last = found.at(-1)?.checkpoint ?? after;
      const reached =
        found.length < batchSize ? later(last, checkpointBefore(current + leadTime)) : last;
      const moved = { ...reached, _id, pending };
      if (await move(written, moved)) {
        await addPending(moved);
        return found.length;
      }
    }
  };
}

/** A position among all expirations, sorted by time, application and key; an application precedes its keys. */
interface Checkpoint {
  readonly moment: Date;
  readonly application_id: Binary;
  /** Zeros for the expiration of the application itself. */
  readonly key_id: Binary;
}

interface FoundExpiration {
  readonly checkpoint: Checkpoint;
  readonly expiration: Omit<Expiration, "leavesNoManager">;
  readonly times: ExpirationTimes;
  /** Whether an application expires that manages its tenant. */
  readonly isManager: boolean;
}

interface ExpiringDocument extends Checkpoint {
  readonly tenant_id: Binary;
  readonly name: string;
  readonly created_at: Date;
  readonly expires_at?: Date;
  readonly disabled?: boolean;
  readonly held_permissions?: readonly string[];
}

interface ExpirationRange {
  readonly after: Checkpoint;
  readonly until: Date;
  readonly limit: number;
}

const zeros = uuid(nilUuid);

/** The position before all expirations of a moment. */
export function checkpointBefore(moment: number): Checkpoint {
  return { moment: new Date(moment), application_id: zeros, key_id: zeros };
}

function later(one: Checkpoint, other: Checkpoint): Checkpoint {
  return compare(one, other) < 0 ? other : one;
}

/** Finds the first expirations in a range, in order. */
async function findExpirations(
  applications: Collection<ApplicationDocument>,
  range: ExpirationRange,
): Promise<FoundExpiration[]> {
  const options = limitsOf(applications);
  const hinted = { hint: byExpiryAndId, ...options };
  const find = (stages: Document[], how: AggregateOptions) =>
    callDriver(() => applications.aggregate<ExpiringDocument>(stages, how).toArray());
  const found = await Promise.all([
    find(applicationExpirationStages(range), hinted),
    find(keyExpirationStages(range), options),
  ]);
  return found.flat().sort(compare).slice(0, range.limit).map(toFoundExpiration);
}

function applicationExpirationStages({ after, until, limit }: ExpirationRange): Document[] {
  const { moment, application_id } = after;
  return [
    {
      $match: {
        $or: [
          { expires_at: moment, _id: { $gt: application_id } },
          { expires_at: { $gt: moment, $lte: until } },
        ],
      },
    },
    { $sort: byExpiryAndId },
    { $limit: limit },
    {
      $project: {
        tenant_id: 1,
        name: 1,
        created_at: 1,
        expires_at: 1,
        disabled: 1,
        held_permissions: 1,
        moment: "$expires_at",
        application_id: "$_id",
        key_id: { $literal: zeros },
      },
    },
  ];
}

/** Sorted in memory: an index on an array gives no order. */
function keyExpirationStages({ after, until, limit }: ExpirationRange): Document[] {
  const { moment, application_id, key_id } = after;
  const within = { $gte: moment, $lte: until };
  const isAfter = {
    $or: [
      { moment: { $gt: moment, $lte: until } },
      { moment, application_id: { $gt: application_id } },
      { moment, application_id, key_id: { $gt: key_id } },
    ],
  };
  return [
    { $match: { keys: { $elemMatch: { expires_at: within } } } },
    { $unwind: "$keys" },
    {
      $project: {
        tenant_id: 1,
        name: 1,
        expires_at: 1,
        created_at: "$keys.created_at",
        moment: "$keys.expires_at",
        application_id: "$_id",
        key_id: "$keys.id",
      },
    },
    { $match: isAfter },
    { $sort: { moment: 1, application_id: 1, key_id: 1 } },
    { $limit: limit },
  ];
}

function toFoundExpiration(document: ExpiringDocument): FoundExpiration {
  const { tenant_id, name, created_at, expires_at, disabled = false } = document;
  const { moment, application_id, key_id } = document;
  const keyId = key_id.toString("hex") === zeros.toString("hex") ? undefined : fromUuid(key_id);
  const at = moment.getTime();
  return {
    checkpoint: { moment, application_id, key_id },
    expiration: {
      tenantId: fromUuid(tenant_id),
      applicationId: fromUuid(application_id),
      name,
      ...(keyId !== undefined && { keyId }),
      at,
    },
    times: {
      at,
      createdAt: created_at.getTime(),
      applicationExpiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
    },
    // The query for keys returns neither field.
    isManager: isManager({ disabled, permissions: document.held_permissions ?? [], rules: [] }),
  };
}

function compare(one: Checkpoint, other: Checkpoint): number {
  return (
    one.moment.getTime() - other.moment.getTime() ||
    Buffer.compare(one.application_id.value(), other.application_id.value()) ||
    Buffer.compare(one.key_id.value(), other.key_id.value())
  );
}
