/** Declares the collections: names, indexes and validators. */
import { Binary, type Document } from "mongodb";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { managerPermissions } from "../../contract/grants.js";
import { expiredRetention } from "../port/records.js";
import { recordSchema } from "./validators.js";

export interface Index {
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly options: {
    readonly expireAfterSeconds?: number;
    readonly partialFilterExpression?: Document;
    readonly sparse?: boolean;
  };
}

export interface CollectionSpec {
  readonly name: string;
  readonly indexes: readonly Index[];
  /** The `$jsonSchema` of the documents. */
  readonly schema: Document;
}

export const applicationsName = "applications";
export const sessionsName = "sessions";

export const byTenant = { tenant_id: 1, _id: -1 } as const;
export const byApplication = { application_id: 1, _id: -1 } as const;
export const byAuthorizer = { authorized_by: 1, _id: -1 } as const;
/** Count the open sessions of an application without reading the documents. */
export const byUnauthorized = {
  ...({ application_id: 1, expires_at: 1, epoch: 1 } as const),
  network_hash: 1,
} as const;
export const byNetwork = {
  ...({ application_id: 1, network_hash: 1 } as const),
  ...({ expires_at: 1, epoch: 1 } as const),
} as const;
export const byAuthorized = {
  ...({ application_id: 1, expires_at: 1, epoch: 1 } as const),
  ...({ authorized_by: 1, authorization_epoch: 1, network_hash: 1 } as const),
} as const;

const noNetwork = new Binary(Buffer.alloc(0));
/** Only unauthorized sessions have the hash of a network. */
export const unauthorizedFilter = { network_hash: { $gt: noNetwork } } as const;
export const authorizedFilter = { network_hash: noNetwork } as const;
export const byExpiry = { expires_at: 1 } as const;
export const byKeyHash = { "keys.hash": 1 } as const;
export const byExpiryAndId = { expires_at: 1, _id: 1 } as const;
export const byManager = { tenant_id: 1, disabled: 1, expires_at: 1 } as const;

/** Matches applications that can create and update others. Does not check `disabled` and `expires_at`. */
export const managerFilter = {
  $and: managerPermissions.map((permission) => ({ held_permissions: permission })),
};

/** Matches applications with keys that another system created. */
export const importedFilter = { "keys.imported": true } as const;

/** A minute longer than expired records are needed: the scan for the oldest expirations may be slow. */
const ttlIndex: Index = {
  key: byExpiry,
  options: { expireAfterSeconds: expiredRetention / 1_000 + 60 },
};

/** One index for each search filter and each sort order. */
export const searchIndexes = {
  type: { tenant_id: 1, type: 1, _id: -1 },
  disabled: { tenant_id: 1, disabled: 1, _id: -1 },
  permission: { tenant_id: 1, held_permissions: 1, _id: -1 },
  name: { tenant_id: 1, folded_name: 1, _id: 1 },
  expires_at: { tenant_id: 1, expires_at: 1, _id: 1 },
  last_used_at: { tenant_id: 1, idle_since: 1, _id: 1 },
  external_id: { tenant_id: 1, external_id: 1, _id: -1 },
  key_id: { tenant_id: 1, "keys.id": 1, _id: -1 },
  created_by: { tenant_id: 1, created_by: 1, _id: -1 },
} as const;

/** Most applications do not have these values, so a partial index stays small. */
const partialFilters: Readonly<Record<string, Document>> = {
  disabled: { disabled: true },
  expires_at: { expires_at: { $exists: true } },
  external_id: { external_id: { $exists: true } },
};
const searchIndexSpecs = Object.entries(searchIndexes).map(([name, key]): Index => {
  const partialFilterExpression = partialFilters[name];
  return { key, options: partialFilterExpression ? { partialFilterExpression } : {} };
});

const tenantIndex: Index = { key: byTenant, options: {} };
const applicationIndex: Index = { key: byApplication, options: {} };
const authorizerIndex: Index = {
  key: byAuthorizer,
  options: { partialFilterExpression: { authorized_by: { $exists: true } } },
};
const openSessionIndexes: Index[] = [
  { key: byUnauthorized, options: { partialFilterExpression: unauthorizedFilter } },
  { key: byNetwork, options: { partialFilterExpression: unauthorizedFilter } },
  { key: byAuthorized, options: { partialFilterExpression: authorizedFilter } },
];
/** Few applications manage their tenant. */
const managerIndex: Index = { key: byManager, options: { partialFilterExpression: managerFilter } };
/** Few applications have imported keys. */
const importedKeyIndex: Index = {
  key: byKeyHash,
  options: { partialFilterExpression: importedFilter },
};
/** Applications and keys by expiry. The id gives a total order. Few of them expire. */
const expirationIndexes: Index[] = [
  { key: byExpiryAndId, options: { partialFilterExpression: { expires_at: { $exists: true } } } },
  { key: { "keys.expires_at": 1 }, options: { sparse: true } },
];

const ids = { bsonType: "array", items: { bsonType: "binData" } };
const strings = { bsonType: "array", items: { bsonType: "string" } };
const version = { bsonType: "number" };

/** Fields of all records. The newest entry of the log describes the change that wrote the document. */
const stored = {
  derived: { version, rev: { bsonType: "number" } },
  optional: { last: { bsonType: "array" } },
};

/**
 * A tombstone takes the place of a deleted record for a while: it carries the last entry of the log,
 * and a slow attempt to write the record finds it. It has none of the fields of a record, and its
 * expiry is the number 0, which no query for dates matches.
 */
const tombstone = {
  required: ["_id", "rev", "expires_at", "purge_at"],
  properties: {
    _id: { bsonType: "binData" },
    rev: { bsonType: "number" },
    expires_at: { enum: [0] },
    purge_at: { bsonType: "date" },
    last: { bsonType: "array" },
  },
  additionalProperties: false,
};

const orTombstone = (schema: Document): Document => ({
  bsonType: "object",
  anyOf: [schema, tombstone],
});

/** Tombstones, by the time from which they can be removed. */
const purgeIndex: Index = { key: { purge_at: 1 }, options: { sparse: true } };

/** Only the index on `_id` is unique, so that the collections can be sharded by `_id`. */
export const credentialCollections: readonly CollectionSpec[] = [
  {
    name: applicationsName,
    indexes: [
      ttlIndex,
      purgeIndex,
      tenantIndex,
      managerIndex,
      importedKeyIndex,
      ...expirationIndexes,
      ...searchIndexSpecs,
    ],
    schema: orTombstone(
      recordSchema(ApplicationRecordSchema, {
        derived: {
          folded_name: { bsonType: "string" },
          held_permissions: strings,
          idle_since: { bsonType: "date" },
          ...stored.derived,
        },
        optional: stored.optional,
      }),
    ),
  },
  {
    name: sessionsName,
    indexes: [
      ttlIndex,
      purgeIndex,
      tenantIndex,
      applicationIndex,
      authorizerIndex,
      ...openSessionIndexes,
    ],
    schema: orTombstone(recordSchema(SessionRecordSchema, stored)),
  },
];

export const eventsName = "events";
export const responsesName = "responses";
export const checkpointsName = "checkpoints";

export const byTenantAndTarget = { tenant_id: 1, targets: 1, _id: -1 } as const;
export const byTenantAndActor = { tenant_id: 1, actors: 1, _id: -1 } as const;

/** The retention of events is in milliseconds. */
export const eventCollections = (eventRetention: number): CollectionSpec[] => [
  {
    name: eventsName,
    indexes: [
      { key: { at: 1 }, options: { expireAfterSeconds: Math.ceil(eventRetention / 1_000) } },
      { key: byTenant, options: {} },
      { key: byTenantAndTarget, options: {} },
      { key: byTenantAndActor, options: {} },
    ],
    // All ids of the actor and of the target, for queries.
    schema: recordSchema(EventRecordSchema, { derived: { actors: ids, targets: ids } }),
  },
  {
    name: responsesName,
    indexes: [{ key: { expires_at: 1 }, options: { expireAfterSeconds: 0 } }],
    schema: {
      bsonType: "object",
      required: ["_id", "expires_at"],
      properties: {
        _id: { bsonType: "binData" },
        // The id of the record that all attempts of a call create.
        record_id: { bsonType: "binData" },
        // Absent until the call has succeeded.
        sealed: { bsonType: "binData" },
        expires_at: { bsonType: "date" },
      },
    },
  },
  {
    name: checkpointsName,
    indexes: [],
    schema: {
      bsonType: "object",
      required: ["_id", "moment", "application_id", "key_id"],
      properties: {
        _id: { bsonType: "string" },
        moment: { bsonType: "date" },
        application_id: { bsonType: "binData" },
        key_id: { bsonType: "binData" },
        // Events that are being added.
        pending: { bsonType: "array" },
      },
    },
  },
];
