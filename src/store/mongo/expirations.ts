import type { Binary, ClientSession, Collection, Document } from "mongodb";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import { isManager } from "../port/applications.js";
import type { Ending, EventStore } from "../port/events.js";
import {
  type EndFacts,
  firstMark,
  isFarBehind,
  isGoodMark,
  isToTell,
  markName,
} from "../port/expirations.js";
import { findOtherManager } from "./application-queries.js";
import type { EventWriter } from "./audit.js";
import { byExpiryAndId } from "./collections.js";
import { type ApplicationDocument, fromUuid, uuid } from "./documents.js";
import { callDriver, limitsIn } from "./driver-call.js";
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

/** Ends looked at in one transaction. */
const batchSize = 200;

/**
 * Tells of what ends, by a mark for each lead: the place of the last end that
 * was looked at. Whoever moves it has told of what is before it, in the same
 * transaction, so that of two instances one tells. Ends that are set behind
 * the mark are those of what was made within the lead.
 */
export function createExpirationEvents(options: ExpirationEventsOptions): EventStore["addForEnds"] {
  const { runTransaction, applications, checkpoints, events, now } = options;

  async function look(lead: number, session?: ClientSession) {
    const _id = markName(lead);
    const present = await now();
    const written = await callDriver(() => checkpoints.findOne({ _id }, limitsIn(session)));
    const isGood = written && isGoodMark(written.moment.getTime(), lead, present);
    const mark = isGood ? written : undefined;
    const after = mark ?? checkpointBefore(firstMark(lead, present));
    const range = { after, until: new Date(present + lead), limit: batchSize };
    const found = await findExpirations(applications, range, session);
    return { _id, present, mark, after, found };
  }

  /** Whether another application manages a tenant beyond the end of one. */
  async function isManagedAfter(
    { tenantId, applicationId: id, at }: FoundExpiration["ending"],
    session: ClientSession,
  ): Promise<boolean> {
    const isLater = { $or: [{ expires_at: null }, { expires_at: { $gt: new Date(at) } }] };
    return (await findOtherManager(applications, { tenantId, id }, isLater, session)) !== null;
  }

  async function tell(
    lead: number,
    toEvents: Parameters<EventStore["addForEnds"]>[1],
    session: ClientSession,
  ): Promise<number> {
    const { _id, present, after, found } = await look(lead, session);
    const told = found.filter(({ facts }) => isToTell(facts, lead, present));
    const endings: Ending[] = [];
    for (const { ending, isManager } of told) {
      const leavesNoManager = isManager && !(await isManagedAfter(ending, session));
      endings.push({ ...ending, leavesNoManager });
    }
    await events.insert(endings.flatMap(toEvents), session);
    const last = found.at(-1)?.checkpoint ?? after;
    const reached = found.length < batchSize ? later(last, checkpointBefore(present + lead)) : last;
    const { moment, application_id, key_id } = reached;
    await callDriver(() =>
      checkpoints.updateOne(
        { _id },
        { $set: { moment, application_id, key_id } },
        { upsert: true, ...limitsIn(session) },
      ),
    );
    return found.length;
  }

  return async (lead, toEvents) => {
    const { present, mark, found } = await look(lead);
    const isBehind = !mark || isFarBehind(mark.moment.getTime(), lead, present);
    if (found.length === 0 && !isBehind) {
      return 0;
    }
    return runTransaction(async (session, commit) => {
      const count = await tell(lead, toEvents, session);
      await commit();
      return count;
    });
  };
}

/** A place among all ends: they sort by moment, then by application, and its own comes before those of its keys. */
interface Checkpoint {
  readonly moment: Date;
  readonly application_id: Binary;
  /** Zeros where it is the application that ends. */
  readonly key_id: Binary;
}

/** An end, and what decides whether to tell of it. */
interface FoundExpiration {
  readonly checkpoint: Checkpoint;
  readonly ending: Omit<Ending, "leavesNoManager">;
  readonly facts: EndFacts;
  /** Whether an application ends that manages its tenant. */
  readonly isManager: boolean;
}

interface ExpiringDocument extends Checkpoint {
  readonly tenant_id: Binary;
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

const zeros = uuid("00000000-0000-0000-0000-000000000000");

/** Before all that ends at a moment. */
export function checkpointBefore(moment: number): Checkpoint {
  return { moment: new Date(moment), application_id: zeros, key_id: zeros };
}

function later(one: Checkpoint, other: Checkpoint): Checkpoint {
  return compare(one, other) < 0 ? other : one;
}

/** Finds the first ends in a range, in their order. */
async function findExpirations(
  applications: Collection<ApplicationDocument>,
  range: ExpirationRange,
  session: ClientSession | undefined,
): Promise<FoundExpiration[]> {
  const options = limitsIn(session);
  const hinted = { hint: byExpiryAndId, ...options };
  // One after the other, as the commands of a transaction have to be.
  const ofApplications = await callDriver(() =>
    applications.aggregate<ExpiringDocument>(applicationExpirations(range), hinted).toArray(),
  );
  const ofKeys = await callDriver(() =>
    applications.aggregate<ExpiringDocument>(keyExpirations(range), options).toArray(),
  );
  return [...ofApplications, ...ofKeys].sort(compare).slice(0, range.limit).map(toFoundExpiration);
}

function applicationExpirations({ after, until, limit }: ExpirationRange): Document[] {
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
        ...{ tenant_id: 1, created_at: 1, expires_at: 1, disabled: 1, held_permissions: 1 },
        ...{ moment: "$expires_at", application_id: "$_id", key_id: { $literal: zeros } },
      },
    },
  ];
}

/** Those in the range are sorted in memory: an index on a list gives no order. */
function keyExpirations({ after, until, limit }: ExpirationRange): Document[] {
  const { moment, application_id, key_id } = after;
  const within = { $gte: moment, $lte: until };
  const newest = { id: "$key_id", created_at: "$key_created_at", expires_at: "$key_expires_at" };
  const isAfter = {
    $or: [
      { moment: { $gt: moment, $lte: until } },
      { moment, application_id: { $gt: application_id } },
      { moment, application_id, key_id: { $gt: key_id } },
    ],
  };
  return [
    {
      $match: {
        $or: [{ older_keys: { $elemMatch: { expires_at: within } } }, { key_expires_at: within }],
      },
    },
    {
      $project: {
        ...{ tenant_id: 1, expires_at: 1 },
        key: { $concatArrays: [[newest], { $ifNull: ["$older_keys", []] }] },
      },
    },
    { $unwind: "$key" },
    {
      $project: {
        ...{ tenant_id: 1, expires_at: 1, created_at: "$key.created_at" },
        ...{ moment: "$key.expires_at", application_id: "$_id", key_id: "$key.id" },
      },
    },
    { $match: isAfter },
    { $sort: { moment: 1, application_id: 1, key_id: 1 } },
    { $limit: limit },
  ];
}

function toFoundExpiration(ended: ExpiringDocument): FoundExpiration {
  const { tenant_id, created_at, expires_at, disabled = false, ...place } = ended;
  const { moment, application_id, key_id } = place;
  const keyId = key_id.toString("hex") === zeros.toString("hex") ? undefined : fromUuid(key_id);
  const at = moment.getTime();
  return {
    checkpoint: { moment, application_id, key_id },
    ending: {
      tenantId: fromUuid(tenant_id),
      applicationId: fromUuid(application_id),
      ...(keyId !== undefined && { keyId }),
      at,
    },
    facts: {
      at,
      createdAt: created_at.getTime(),
      applicationEndsAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
    },
    // Of keys, neither is asked for.
    isManager: isManager({ disabled, permissions: ended.held_permissions ?? [], rules: [] }),
  };
}

function compare(one: Checkpoint, other: Checkpoint): number {
  return (
    one.moment.getTime() - other.moment.getTime() ||
    Buffer.compare(one.application_id.value(), other.application_id.value()) ||
    Buffer.compare(one.key_id.value(), other.key_id.value())
  );
}
