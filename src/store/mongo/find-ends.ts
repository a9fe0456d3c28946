import type { Binary, ClientSession, Collection, Document } from "mongodb";
import type { EndFacts } from "../ends.js";
import type { Ending } from "../events.js";
import { isManager } from "../managers.js";
import { type ApplicationDocument, fromUuid, uuid } from "./documents.js";
import { limitsIn, reach } from "./reach.js";
import { byEnd } from "./schema.js";

/** A place among all ends: they sort by moment, then by application, and its own comes before those of its keys. */
export interface EndPlace {
  readonly moment: Date;
  readonly application_id: Binary;
  /** Zeros where it is the application that ends. */
  readonly key_id: Binary;
}

/** An end, and what decides whether to tell of it. */
export interface FoundEnd {
  readonly place: EndPlace;
  readonly ending: Omit<Ending, "leavesNoManager">;
  readonly facts: EndFacts;
  /** Whether an application ends that manages its tenant. */
  readonly isOfManager: boolean;
}

interface Ended extends EndPlace {
  readonly tenant_id: Binary;
  readonly created_at: Date;
  readonly expires_at?: Date;
  readonly disabled?: boolean;
  readonly held_permissions?: readonly string[];
}

export interface EndRange {
  readonly after: EndPlace;
  readonly until: Date;
  readonly limit: number;
}

const zeros = uuid("00000000-0000-0000-0000-000000000000");

/** Before all that ends at a moment. */
export function placeBefore(moment: number): EndPlace {
  return { moment: new Date(moment), application_id: zeros, key_id: zeros };
}

export function later(one: EndPlace, other: EndPlace): EndPlace {
  return compare(one, other) < 0 ? other : one;
}

/** Finds the first ends in a range, in their order. */
export async function findEnds(
  applications: Collection<ApplicationDocument>,
  range: EndRange,
  session: ClientSession | undefined,
): Promise<FoundEnd[]> {
  const options = limitsIn(session);
  const hinted = { hint: byEnd, ...options };
  // One after the other, as the commands of a transaction have to be.
  const ofApplications = await reach(() =>
    applications.aggregate<Ended>(endsOfApplications(range), hinted).toArray(),
  );
  const ofKeys = await reach(() =>
    applications.aggregate<Ended>(endsOfKeys(range), options).toArray(),
  );
  return [...ofApplications, ...ofKeys].sort(compare).slice(0, range.limit).map(toFoundEnd);
}

function endsOfApplications({ after, until, limit }: EndRange): Document[] {
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
    { $sort: byEnd },
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
function endsOfKeys({ after, until, limit }: EndRange): Document[] {
  const { moment, application_id, key_id } = after;
  const within = { $gte: moment, $lte: until };
  const newest = {
    id: { $ifNull: ["$key_id", "$_id"] },
    created_at: { $ifNull: ["$key_created_at", "$created_at"] },
    expires_at: "$key_expires_at",
  };
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

function toFoundEnd(ended: Ended): FoundEnd {
  const { tenant_id, created_at, expires_at, disabled = false, ...place } = ended;
  const { moment, application_id, key_id } = place;
  const keyId = key_id.toString("hex") === zeros.toString("hex") ? undefined : fromUuid(key_id);
  const at = moment.getTime();
  return {
    place: { moment, application_id, key_id },
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
    isOfManager: isManager({ disabled, permissions: ended.held_permissions ?? [], rules: [] }),
  };
}

function compare(one: EndPlace, other: EndPlace): number {
  return (
    one.moment.getTime() - other.moment.getTime() ||
    Buffer.compare(one.application_id.value(), other.application_id.value()) ||
    Buffer.compare(one.key_id.value(), other.key_id.value())
  );
}
