/** Converts records to documents and back, as records.proto declares them. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Binary, type Document, UUID } from "mongodb";
import {
  ApplicationRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { heldPermissions } from "../../contract/grants.js";
import { createConverter } from "../../contract/message-converter.js";
import { idFromBytes } from "../../lib/uuid.js";
import type { RecordChange } from "../core/decide.js";
import { foldName, lastUseOf } from "../port/applications.js";
import type { EventRecord } from "../port/events.js";
import type {
  ApplicationFields,
  ApplicationRecord,
  SessionFields,
  SessionRecord,
} from "../port/records.js";
import type { Clock } from "../port/store.js";

/** The fields of an application document that the code reads. The record declares the others. */
export interface ApplicationDocument {
  readonly _id: Binary;
  readonly keys: readonly KeyDocument[];
  readonly authorization_epoch: number;
  readonly version: number;
  readonly rev: number;
  readonly last?: readonly LogEntry[];
}

interface KeyDocument {
  readonly hash: Binary;
  readonly imported?: boolean;
}

/** The fields of a session document that the code reads. */
export interface SessionDocument {
  readonly _id: Binary;
  readonly expires_at: Date;
  readonly version: number;
  readonly rev: number;
  readonly last?: readonly LogEntry[];
}

/** The fields of an event document that the code reads. The record declares the others. */
export interface EventDocument {
  readonly _id: Binary;
  readonly kind: string;
  readonly outcome: EventRecord["outcome"];
  /** All ids of the actor and of the target. */
  readonly actors: readonly Binary[];
  readonly targets: readonly Binary[];
}

/** The event and the response of a change, which its document carries until the log has them. */
export interface LogEntry {
  /** The id of the event. */
  readonly id: Binary;
  readonly at: Date;
  readonly event?: EventDocument | undefined;
  readonly response?: StoredResponse | undefined;
}

export interface StoredResponse {
  readonly _id: Binary;
  readonly sealed: Binary;
  readonly expires_at: Date;
}

/** Projects the fields of a record. */
export const withoutLog = { last: 0 } as const;

/** What a document stores. Tombstones have no record. */
export interface Stored<R> {
  readonly id: string;
  /** Incremented by every write of the document but those of last uses, for optimistic concurrency. */
  readonly rev: number;
  readonly record: R | undefined;
}

/** Creates a decoder of documents, of which some may be tombstones. */
export const toStored =
  <D extends { readonly _id: Binary; readonly rev: number }, R>(toRecord: (document: D) => R) =>
  (document: D): Stored<R> => ({
    id: fromUuid(document._id),
    rev: document.rev,
    record: (document as Document).expires_at === 0 ? undefined : toRecord(document),
  });

/** Milliseconds for which a tombstone is kept: longer than any attempt to write its record. */
const tombstoneLifetime = 10 * 60_000;

/** The fields of a tombstone but for its id and its `rev`. */
export const tombstoneAt = (now: number) => ({
  expires_at: 0,
  purge_at: new Date(now + tombstoneLifetime),
});

/** The name of a field in the documents of a record: that of the message. The record's id is `_id`. */
export const fieldNameIn =
  (record: DescMessage) =>
  (field: DescField): string =>
    field.parent === record && field.name === "id" ? "_id" : field.name;

/** The fields of a record that are given. Null stands for an absent one. */
type Given<R> = { readonly [K in keyof R]?: R[K] | null | undefined };

/** Creates a converter from the given fields of a record to those of its document. */
export function createToDocument<R>(record: DescMessage): (fields: Given<R>) => Document {
  return createConverter(record, {
    nameAfter: fieldNameIn(record),
    values: { id: uuid, time: (at: number) => new Date(at), bytes: toBinary },
    // An array of pairs, because names of fields cannot have dots and dollars everywhere.
    map: (map: object) => Object.entries(map).map(([key, value]) => ({ key, value })),
  });
}

export function createToRecord<R>(record: DescMessage): (document: object) => R {
  const convert = createConverter(record, {
    nameBefore: fieldNameIn(record),
    values: { id: fromUuid, time: (at: Date) => at.getTime(), bytes },
    map: (pairs: readonly { key: string; value: unknown }[]) =>
      Object.fromEntries(pairs.map(({ key, value }) => [key, value])),
    withDefaults: true,
  });
  return (document) => convert(document) as R;
}

const applicationFields = createToDocument<ApplicationFields>(ApplicationRecordSchema);
const applicationRecord = createToRecord<ApplicationFields>(ApplicationRecordSchema);
const sessionRecord = createToRecord<SessionFields>(SessionRecordSchema);

const sessionFields = createToDocument<SessionFields>(SessionRecordSchema);

export function toApplicationDocument(record: ApplicationFields, version: number): Document {
  return { ...applicationFields(record), ...derivedFields(record), version };
}

/** The document of a record that a change creates, or the update of one that it changes. */
interface DocumentWrite {
  readonly document?: Document;
  readonly update?: Document;
}

export function toWrite({ kind, before, after }: RecordChange): DocumentWrite {
  if (!after) {
    return {};
  }
  if (kind === "session") {
    return before
      ? { update: sessionUpdate(before, after) }
      : { document: toSessionDocument(after, after.version) };
  }
  return before
    ? { update: applicationUpdate(before, after) }
    : { document: toApplicationDocument(after, after.version) };
}

function applicationUpdate(before: ApplicationRecord, after: ApplicationRecord): Document {
  const changed = changedFields(ApplicationRecordSchema, before, after);
  const isChanged = (name: keyof ApplicationFields) =>
    changed.some((one) => one.localName === name);
  const { name, permissions, rules } = after;
  const derived = derivedFields({
    ...(isChanged("name") && { name }),
    ...((isChanged("permissions") || isChanged("rules")) && { permissions, rules }),
  });
  return toUpdate(changed, after, applicationFields, derived);
}

function sessionUpdate(before: SessionRecord, after: SessionRecord): Document {
  return toUpdate(changedFields(SessionRecordSchema, before, after), after, sessionFields, {});
}

/** Values that a change shares with the record before it are the same. */
function changedFields<R extends object>(schema: DescMessage, before: R, after: R): DescField[] {
  return schema.fields.filter(
    ({ localName }) => before[localName as keyof R] !== after[localName as keyof R],
  );
}

function toUpdate<R extends { readonly version: number }>(
  changed: readonly DescField[],
  after: R,
  toFields: (given: Given<R>) => Document,
  derived: Document,
): Document {
  const given = changed.map(({ localName }) => [localName, after[localName as keyof R]] as const);
  const removed = changed.filter(({ localName }) => after[localName as keyof R] === undefined);
  return {
    $set: {
      ...toFields(Object.fromEntries(given) as Given<R>),
      ...derived,
      version: after.version,
    },
    ...(removed.length > 0 && {
      $unset: Object.fromEntries(removed.map(({ name }) => [name, ""])),
    }),
  };
}

/** Fields that queries need in addition to those of a record, as far as the given fields determine them. */
function derivedFields(record: Partial<ApplicationFields>): Document {
  const { name, permissions, rules, createdAt, lastUsedAt } = record;
  return {
    // The name in the form used for searching and sorting.
    ...(name !== undefined && { folded_name: foldName(name) }),
    // All permissions, direct and from rules, without duplicates.
    ...(permissions && rules && { held_permissions: heldPermissions({ permissions, rules }) }),
    // The last use, or the creation if it was never used.
    ...(createdAt !== undefined && { idle_since: new Date(lastUseOf({ createdAt, lastUsedAt })) }),
  };
}

export function toSessionDocument(record: SessionFields, version: number): Document {
  return { ...sessionFields(record), version };
}

export function toApplication(document: ApplicationDocument): ApplicationRecord {
  return Object.assign(applicationRecord(document), { version: document.version });
}

export function toSession(document: SessionDocument): SessionRecord {
  return Object.assign(sessionRecord(document), { version: document.version });
}

export function uuid(id: string): UUID {
  return new UUID(id);
}

export function fromUuid(id: Binary): string {
  return idFromBytes(bytes(id));
}

export function toBinary(bytes: Uint8Array): Binary {
  return new Binary(bytes);
}

function bytes({ buffer, position }: Binary): Buffer {
  return Buffer.from(buffer.buffer, buffer.byteOffset, position);
}

/** The current time as a value in MongoDB expressions. */
export type Time = () => Date | "$$NOW";

/** The clock of the database: the same for all instances. */
export const databaseTime: Time = () => "$$NOW";

export const timeFromClock =
  (clock: Clock): Time =>
  () =>
    new Date(clock());

/** The latest time that a date can represent. */
export const maxDate = new Date(8.64e15);

/** Matches unexpired documents. TTL indexes delete too late to rely on them. */
export const notExpired = (time: Time): Document => ({
  $expr: { $gt: [{ $ifNull: ["$expires_at", maxDate] }, time()] },
});

/** Matches unexpired documents with the TTL index: fast even if most documents have expired. */
export const notExpiredByIndex = (time: Time): Document => ({
  $or: [
    { expires_at: null },
    { expires_at: { $type: "date" }, $expr: { $gt: ["$expires_at", time()] } },
  ],
});

/** Matches expired documents that MongoDB has not deleted yet, with the TTL index. */
export const expiredByIndex = (time: Time): Document => ({
  expires_at: { $type: "date" },
  $expr: { $lte: ["$expires_at", time()] },
});
