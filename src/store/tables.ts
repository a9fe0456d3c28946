/**
 * Declares what the stores maintain for each kind of record besides the record
 * itself: the indexes that find it, and the records that it ends with. A new
 * index or parent is only declared here.
 */
import { heldPermissions } from "../contract/grants.js";
import { foldName, isManager, lastUseOf } from "./port/applications.js";
import type { RecordKind, Records } from "./port/change.js";
import type { ApplicationRecord, SessionRecord } from "./port/records.js";

export type Value = string | number | Uint8Array;

/**
 * How the values of an index compare:
 * - `none`: there are none. The records of a tenant, in the order of their ids;
 * - `id`: UUIDs;
 * - `time`: milliseconds since the epoch, or infinity;
 * - `text`: texts without a null character, in the order of their bytes;
 * - `exact`: texts that are only looked up. An engine may find records that
 *   have another one with the same hash;
 * - `bytes`: bytes of one length.
 */
export type ValueType = "none" | "id" | "time" | "text" | "exact" | "bytes";

/** Finds stored records by values, in the order of the values and then of the ids. Includes expired ones. */
export interface Index<R> {
  /** Identifies the index in stored rows, among those of all kinds. */
  readonly number: number;
  readonly type: ValueType;
  /** The values under which a record is found: none to leave it out. */
  values(record: R): readonly Value[];
  /** Whether it spans all tenants. */
  readonly isGlobal?: true;
  /** Whether the number of its rows per tenant is stored, because counting many takes long. */
  readonly isCounted?: true;
}

/** A record that others end with. */
export interface Parent<R> {
  readonly kind: RecordKind;
  /** Its id, if the record has this parent. */
  id(record: R): string | undefined;
  /** The index that finds records by the id of this parent. */
  readonly index: string;
  /** The epoch of the parent that the record belongs to. It ends when the parent gets another one. */
  epoch(record: R): number;
  currentEpoch(parent: ApplicationRecord): number;
}

/** Its order is that of the ids, so it lists the newest records from its end. */
const newest = { type: "none", values: () => [""] } as const;

type MayExpire = Pick<ApplicationRecord, "expiresAt">;
const expiryOf = ({ expiresAt }: MayExpire) => (expiresAt === undefined ? [] : [expiresAt]);
const optional = <T>(value: T | undefined): T[] => (value === undefined ? [] : [value]);

const application = {
  indexes: {
    newest: { number: 1, ...newest, isCounted: true },
    createdBy: { number: 2, type: "id", values: ({ createdBy }) => optional(createdBy) },
    disabled: { number: 3, type: "none", values: ({ disabled }) => (disabled ? [""] : []) },
    expiry: { number: 4, type: "time", values: expiryOf },
    externalId: { number: 5, type: "exact", values: ({ externalId }) => optional(externalId) },
    keyId: { number: 6, type: "id", values: ({ keys }) => keys.map(({ id }) => id) },
    lastUse: { number: 7, type: "time", values: (record) => [lastUseOf(record)] },
    manager: {
      number: 8,
      type: "time",
      values: (record) => (isManager(record) ? [record.expiresAt ?? Number.POSITIVE_INFINITY] : []),
    },
    name: { number: 9, type: "text", values: ({ name }) => [foldName(name)] },
    permission: { number: 10, type: "exact", values: heldPermissions },
    type: { number: 11, type: "text", values: ({ type }) => [type] },
    importedKey: {
      number: 12,
      type: "bytes",
      values: ({ keys }) => keys.filter(({ imported }) => imported).map(({ hash }) => hash),
      isGlobal: true,
    },
    /** The expirations of the application and of its keys. */
    expirations: {
      number: 13,
      type: "time",
      values: (record) => [record, ...record.keys].flatMap(expiryOf),
      isGlobal: true,
    },
    /** Until the expiry was noticed. */
    expiring: { number: 14, type: "time", values: expiryOf, isGlobal: true },
  },
  parents: {},
} satisfies Table<ApplicationRecord>;

const session = {
  indexes: {
    newest: { number: 32, ...newest },
    application: { number: 33, type: "id", values: ({ applicationId }) => [applicationId] },
    authorizer: { number: 34, type: "id", values: ({ authorizedBy }) => optional(authorizedBy) },
    expiring: { number: 35, type: "time", values: expiryOf, isGlobal: true },
  },
  parents: {
    application: {
      kind: "application",
      id: ({ applicationId }) => applicationId,
      index: "application",
      epoch: ({ epoch }) => epoch,
      currentEpoch: ({ sessionEpoch }) => sessionEpoch,
    },
    authorizer: {
      kind: "application",
      id: ({ authorizedBy }) => authorizedBy,
      index: "authorizer",
      epoch: ({ authorizationEpoch }) => authorizationEpoch,
      currentEpoch: ({ authorizationEpoch }) => authorizationEpoch,
    },
  },
} satisfies Table<SessionRecord>;

interface Table<R> {
  readonly indexes: Readonly<Record<string, Index<R>>>;
  readonly parents: Readonly<Record<string, Parent<R>>>;
}

/** Records come before their parents: that is the order in which expirations are noticed. */
export const tables = { session, application };

export type IndexName<K extends RecordKind> = keyof (typeof tables)[K]["indexes"] & string;

export const recordKinds = Object.keys(tables) as RecordKind[];

export function indexOf<K extends RecordKind>(kind: K, name: IndexName<K>): Index<Records[K]> {
  return (tables[kind].indexes as Record<string, Index<never>>)[name] as Index<Records[K]>;
}

/** The indexes of a kind of record. */
export const indexesOf = mapKinds(({ indexes }) => Object.values(indexes)) as {
  readonly [K in RecordKind]: readonly Index<Records[K]>[];
};

/** The parents of a kind of record, by name. */
export const parentsOf = mapKinds(({ parents }) => Object.entries(parents)) as {
  readonly [K in RecordKind]: readonly (readonly [name: string, Parent<Records[K]>])[];
};

/** A kind of record that ends with another. */
export interface Child {
  readonly kind: RecordKind;
  readonly parent: Parent<never>;
}

/** The kinds of records that end with a kind of record. */
export const childrenOf = mapKinds((_, kind) =>
  recordKinds.flatMap((child): Child[] =>
    Object.values<Parent<never>>(tables[child].parents)
      .filter((parent) => parent.kind === kind)
      .map((parent) => ({ kind: child, parent })),
  ),
);

function mapKinds<T>(map: (table: Table<never>, kind: RecordKind) => T) {
  const entries = recordKinds.map((kind) => [kind, map(tables[kind], kind)]);
  return Object.fromEntries(entries) as Readonly<Record<RecordKind, T>>;
}
