/** Adds events for applications and keys that expire soon or have expired. */
import type { Binary, ClientSession, Collection, Document } from "mongodb";
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
import { type ApplicationDocument, fromUuid, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import type { EventWriter } from "./event-documents.js";
import type { RunTransaction } from "./transaction-retry.js";

export interface CheckpointDocument extends Checkpoint {
  readonly _id: string;
}

export interface ExpirationEventsOptions {
  readonly runTransaction: RunTransaction;
  readonly applications: Collection<ApplicationDocument>;
  readonly checkpoints: Collection<CheckpointDocument>;
  readonly events: EventWriter;
  /** The store's clock. */
  readonly now: () => MaybePromise<number>;
}

/** Expirations per transaction. */
const batchSize = 200;

/**
 * Adds events for upcoming expirations. A checkpoint for each lead time marks
 * the last expiration processed. It moves in the transaction that adds the
 * events, so that only one of several instances adds them. An expiry before the
 * checkpoint belongs to a credential that was created, or whose expiry was moved
 * earlier, within the lead time.
 */
export function createExpirationEvents(
  options: ExpirationEventsOptions,
): EventStore["addExpirationEvents"] {
  const { runTransaction, applications, checkpoints, events, now } = options;

  async function readDue(leadTime: number, session?: ClientSession) {
    const _id = checkpointName(leadTime);
    const current = await now();
    const written = await callDriver(() =>
      checkpoints.findOne({ _id }, limitsOf(checkpoints, session)),
    );
    const isUsable = written && isUsableCheckpoint(written.moment.getTime(), leadTime, current);
    const checkpoint = isUsable ? written : undefined;
    const after = checkpoint ?? checkpointBefore(firstCheckpoint(leadTime, current));
    const range = { after, until: new Date(current + leadTime), limit: batchSize };
    const found = await findExpirations(applications, range, session);
    return { _id, current, checkpoint, after, found };
  }

  /** Whether another application manages the tenant after one has expired. */
  async function isManagedAfter(
    { tenantId, applicationId: id, at }: FoundExpiration["expiration"],
    session: ClientSession,
  ): Promise<boolean> {
    const isLater = { $or: [{ expires_at: null }, { expires_at: { $gt: new Date(at) } }] };
    return (await findOtherManager(applications, { tenantId, id }, isLater, session)) !== null;
  }

  async function addEvents(
    leadTime: number,
    toEvents: Parameters<EventStore["addExpirationEvents"]>[1],
    session: ClientSession,
  ): Promise<number> {
    const { _id, current, after, found } = await readDue(leadTime, session);
    const due = found.filter(({ times }) => isReportable(times, leadTime, current));
    const expirations: Expiration[] = [];
    for (const { expiration, isManager } of due) {
      const leavesNoManager = isManager && !(await isManagedAfter(expiration, session));
      expirations.push({ ...expiration, leavesNoManager });
    }
    await events.insert(expirations.flatMap(toEvents), session);
    const last = found.at(-1)?.checkpoint ?? after;
    const reached =
      found.length < batchSize ? laterCheckpoint(last, checkpointBefore(current + leadTime)) : last;
    const { moment, application_id, key_id } = reached;
    await callDriver(() =>
      checkpoints.updateOne(
        { _id },
        { $set: { moment, application_id, key_id } },
        { upsert: true, ...limitsOf(checkpoints, session) },
      ),
    );
    return found.length;
  }

  return async (leadTime, toEvents) => {
    const { current, checkpoint, found } = await readDue(leadTime);
    const isBehind = !checkpoint || isFarBehind(checkpoint.moment.getTime(), leadTime, current);
    if (found.length === 0 && !isBehind) {
      return 0;
    }
    return runTransaction(async (session, commit) => {
      const count = await addEvents(leadTime, toEvents, session);
      await commit();
      return count;
    });
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

function laterCheckpoint(one: Checkpoint, other: Checkpoint): Checkpoint {
  return compare(one, other) < 0 ? other : one;
}

/** Finds the first expirations in a range, in order. */
async function findExpirations(
  applications: Collection<ApplicationDocument>,
  range: ExpirationRange,
  session: ClientSession | undefined,
): Promise<FoundExpiration[]> {
  const options = limitsOf(applications, session);
  const hinted = { hint: byExpiryAndId, ...options };
  // In sequence: a transaction runs one command at a time.
  const applicationExpirations = await callDriver(() =>
    applications.aggregate<ExpiringDocument>(applicationExpirationStages(range), hinted).toArray(),
  );
  const keyExpirations = await callDriver(() =>
    applications.aggregate<ExpiringDocument>(keyExpirationStages(range), options).toArray(),
  );
  return [...applicationExpirations, ...keyExpirations]
    .sort(compare)
    .slice(0, range.limit)
    .map(toFoundExpiration);
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
