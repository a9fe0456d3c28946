/** Filters the change stream on the server, and maps its events to changes of credentials. */
import type { Binary, Document, ResumeToken } from "mongodb";
import type { Change } from "../../port/changes.js";
import { applicationsName, sessionsName } from "../collections.js";
import { fromUuid, subjectOf } from "../documents.js";
import { cleanupMarker } from "../session-cleanup.js";

const before = "$fullDocumentBeforeChange";
const updated = "$updateDescription.updatedFields";

/** The new value of a field. MongoDB logs a large update as a replacement of the entire document. */
const after = (field: string): Document => ({
  $ifNull: [`${updated}.${field}`, `$fullDocument.${field}`, null],
});

const collections = { $in: [applicationsName, sessionsName] };

const orEmpty = (list: Document | string): Document => ({ $ifNull: [list, []] });
const each = (list: Document | string, expression: Document | string): Document => ({
  $map: { input: orEmpty(list), in: expression },
});

/** The names of all changed fields, such as `keys.0.last_used_at`. Empty for a replacement. */
const touched: Document = {
  $concatArrays: [
    each({ $objectToArray: updated }, "$$this.k"),
    orEmpty("$updateDescription.removedFields"),
    each("$updateDescription.truncatedArrays", "$$this.field"),
  ],
};

const someTouched = (test: (name: string) => Document): Document => ({
  $anyElementTrue: [each(touched, test("$$this"))],
});

/** Changes of these fields alone do not affect credentials: usage, derived fields and a lock. */
const ignoredFields =
  /^((keys\.\d+\.)?last_used_at|idle_since|folded_name|held_permissions|manager_lock)$/;

/** Keys and their fields, except their last use. */
const keyFields = /^keys(\.\d+(\.(?!last_used_at$).*)?)?$/;

const isMatch = (input: string, regex: RegExp): Document => ({ $regexMatch: { input, regex } });

const withoutUses = (keys: string): Document =>
  each(keys, { $unsetField: { field: "last_used_at", input: "$$this" } });

/** Compares the changed fields of an update, or the documents of a replacement. */
const haveKeysChanged: Document = {
  $cond: [
    { $eq: ["$operationType", "update"] },
    someTouched((name) => isMatch(name, keyFields)),
    { $ne: [withoutUses("$fullDocument.keys"), withoutUses(`${before}.keys`)] },
  ],
};

/** Removes irrelevant events on the server, and hashes, rules and names from the others. */
export const eventPipeline: Document[] = [
  {
    $match: {
      $or: [
        {
          operationType: { $in: ["replace", "drop", "rename"] },
          "ns.coll": collections,
        },
        {
          operationType: "update",
          "ns.coll": collections,
          "updateDescription.updatedFields.expires_at": { $ne: cleanupMarker },
          $expr: someTouched((name) => ({ $not: isMatch(name, ignoredFields) })),
        },
        {
          operationType: "delete",
          "ns.coll": collections,
          "fullDocumentBeforeChange.expires_at": { $ne: cleanupMarker },
        },
        { operationType: "rename", "to.coll": collections },
        { operationType: { $in: ["dropDatabase", "invalidate"] } },
      ],
    },
  },
  {
    $project: {
      operationType: 1,
      wallTime: 1,
      id: "$documentKey._id",
      tenant_id: `${before}.tenant_id`,
      application_id: `${before}.application_id`,
      expires_at: `${before}.expires_at`,
      has_other_keys: haveKeysChanged,
      was_authorized_at: `${before}.authorized_at`,
      authorized_at: after("authorized_at"),
      modified_at: { $ifNull: [after("modified_at"), `${before}.modified_at`] },
    },
  },
];

/** An event as the pipeline returns it. */
export interface ChangeEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
  readonly wallTime?: Date;
  readonly id?: Binary;
  readonly tenant_id?: Binary;
  readonly application_id?: Binary;
  /** Before the change. */
  readonly expires_at?: Date;
  readonly has_other_keys?: boolean;
  readonly was_authorized_at?: Date;
  readonly authorized_at?: Date | null;
  readonly modified_at?: Date | null;
}

export interface TenantChange {
  readonly tenantId: string;
  readonly change: Change;
}

/**
 * The moment is by the store's clock. Returns `undefined` if the tenant is
 * unknown: a collection was dropped, or the document has no pre-image.
 */
export function toTenantChange(event: ChangeEvent, moment: number): TenantChange | undefined {
  const { id, tenant_id, application_id } = event;
  if (!id || !tenant_id) {
    return undefined;
  }
  const subject = subjectOf(id, application_id);
  const kindAndTime =
    event.operationType === "delete" ? toRemoval(event, moment) : toUpdate(event, moment);
  return { tenantId: fromUuid(tenant_id), change: { ...subject, ...kindAndTime } };
}

type KindAndTime = Pick<Change, "kind" | "at">;

function toRemoval({ expires_at }: ChangeEvent, moment: number): KindAndTime {
  return expires_at && expires_at.getTime() <= moment
    ? { kind: "expired", at: expires_at.getTime() }
    : { kind: "deleted", at: moment };
}

function toUpdate(event: ChangeEvent, moment: number): KindAndTime {
  const { authorized_at, was_authorized_at, modified_at, has_other_keys } = event;
  if (authorized_at && !was_authorized_at) {
    return { kind: "authorized", at: authorized_at.getTime() };
  }
  const at = modified_at?.getTime() ?? moment;
  return { kind: has_other_keys ? "regenerated" : "updated", at };
}
