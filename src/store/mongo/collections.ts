/** Declares the collections: names, indexes and validators. */
import type { Document } from "mongodb";
import { applicationTypes } from "../../contract/grants.js";
import { managerPermissions } from "../port/applications.js";
import { expiredRetention } from "../port/records.js";

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
  /** More options of `create` and `collMod`. */
  readonly options?: Document;
}

export const applicationsName = "applications";
export const sessionsName = "sessions";

export const byTenant = { tenant_id: 1, _id: -1 } as const;
export const byApplication = { application_id: 1, _id: -1 } as const;
export const byAuthorizer = { authorized_by: 1, _id: -1 } as const;
/** Counts the open sessions of an application without reading the documents. */
export const byOpenSession = { application_id: 1, expires_at: 1, epoch: 1 } as const;
export const byExpiry = { expires_at: 1 } as const;
export const byForeignHash = { foreign_hashes: 1 } as const;
export const byExpiryAndId = { expires_at: 1, _id: 1 } as const;
export const byManager = { tenant_id: 1, disabled: 1, expires_at: 1 } as const;

/** Matches applications that can create and update others. Does not check `disabled` and `expires_at`. */
export const managerFilter = {
  $and: managerPermissions.map((permission) => ({ held_permissions: permission })),
};

const ttlIndex: Index = {
  key: byExpiry,
  options: { expireAfterSeconds: expiredRetention / 1_000 },
};

/** One index for each search filter and each sort order. */
export const searchIndexes = {
  type: { tenant_id: 1, type: 1, _id: -1 },
  disabled: { tenant_id: 1, disabled: 1, _id: -1 },
  permission: { tenant_id: 1, held_permissions: 1, _id: -1 },
  name: { tenant_id: 1, folded_name: 1, _id: 1 },
  expires_at: { tenant_id: 1, expires_at: 1, _id: 1 },
  last_used_at: { tenant_id: 1, idle_since: 1, _id: 1 },
} as const;

/** Most applications do not have these values, so a partial index stays small. */
const partialFilters: Readonly<Record<string, Document>> = {
  disabled: { disabled: true },
  expires_at: { expires_at: { $exists: true } },
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
const openSessionIndex: Index = { key: byOpenSession, options: {} };
/** Few applications manage their tenant. */
const managerIndex: Index = { key: byManager, options: { partialFilterExpression: managerFilter } };
/** Few applications have foreign keys. */
const foreignKeyIndex: Index = { key: byForeignHash, options: { sparse: true } };
/** Applications and keys by expiry. The id gives a total order. Few of them expire. */
const expirationIndexes: Index[] = [
  { key: byExpiryAndId, options: { partialFilterExpression: { expires_at: { $exists: true } } } },
  { key: { key_expires_at: 1 }, options: { sparse: true } },
  { key: { "older_keys.expires_at": 1 }, options: { sparse: true } },
];

const strings = { bsonType: "array", items: { bsonType: "string" } };
const olderKeys = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["id", "hash", "created_at"],
    properties: {
      id: { bsonType: "binData" },
      hash: { bsonType: "binData" },
      created_at: { bsonType: "date" },
      expires_at: { bsonType: "date" },
      last_used_at: { bsonType: "date" },
      foreign: { bsonType: "bool" },
    },
  },
};
const conditions = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["attribute", "operator", "value"],
    properties: {
      attribute: { bsonType: "string" },
      operator: { bsonType: "string" },
      value: { bsonType: "string" },
    },
  },
};
const rules = {
  bsonType: "array",
  items: {
    bsonType: "object",
    required: ["priority", "conditions", "transform", "permissions"],
    properties: {
      description: { bsonType: "string" },
      priority: { bsonType: "number" },
      container: { bsonType: "string" },
      conditions,
      transform: { bsonType: "string" },
      permissions: strings,
    },
  },
};

/**
 * Unlisted fields are allowed, so that a newer version can add fields during a
 * rolling upgrade. Only the index on `_id` is unique, so that the collections
 * can be sharded by `_id`.
 */
export const credentialCollections: readonly CollectionSpec[] = [
  {
    name: applicationsName,
    indexes: [
      ttlIndex,
      tenantIndex,
      managerIndex,
      foreignKeyIndex,
      ...expirationIndexes,
      ...searchIndexSpecs,
    ],
    // The change feed finds the tenant of a deleted document in its pre-image.
    options: { changeStreamPreAndPostImages: { enabled: true } },
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "name", "folded_name", "type", "key_hash"],
        ...["permissions", "rules", "held_permissions", "created_at", "idle_since", "version"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        name: { bsonType: "string" },
        type: { enum: [...applicationTypes] },
        key_hash: { bsonType: "binData" },
        key_id: { bsonType: "binData" },
        key_created_at: { bsonType: "date" },
        key_expires_at: { bsonType: "date" },
        key_last_used_at: { bsonType: "date" },
        key_foreign: { bsonType: "bool" },
        older_keys: olderKeys,
        foreign_hashes: { bsonType: "array", items: { bsonType: "binData" } },
        permissions: strings,
        rules,
        held_permissions: strings,
        folded_name: { bsonType: "string" },
        idle_since: { bsonType: "date" },
        allowed_origins: strings,
        allowed_cidrs: strings,
        disabled: { bsonType: "bool" },
        session_epoch: { bsonType: ["int", "long"] },
        session_quota: { bsonType: "int" },
        created_at: { bsonType: "date" },
        created_by: { bsonType: "binData" },
        modified_at: { bsonType: "date" },
        modified_by: { bsonType: "binData" },
        expires_at: { bsonType: "date" },
        last_used_at: { bsonType: "date" },
        manager_lock: { bsonType: "objectId" },
        version: { bsonType: ["int", "long"] },
      },
    },
  },
  {
    name: sessionsName,
    indexes: [ttlIndex, tenantIndex, applicationIndex, authorizerIndex, openSessionIndex],
    options: { changeStreamPreAndPostImages: { enabled: true } },
    schema: {
      bsonType: "object",
      required: [
        ...["_id", "tenant_id", "application_id", "epoch", "key_hash", "nonce_hash"],
        ...["permissions", "rules", "created_at", "expires_at"],
      ],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        application_id: { bsonType: "binData" },
        epoch: { bsonType: ["int", "long"] },
        key_hash: { bsonType: "binData" },
        nonce_hash: { bsonType: "binData" },
        permissions: strings,
        rules,
        created_at: { bsonType: "date" },
        expires_at: { bsonType: "date" },
        authorized_at: { bsonType: "date" },
        authorized_by: { bsonType: "binData" },
        version: { bsonType: ["int", "long"] },
      },
    },
  },
];

export const eventsName = "events";
export const responsesName = "responses";
export const checkpointsName = "checkpoints";

export const byTenantNewest = { tenant_id: 1, _id: -1 } as const;
export const byTenantAndTarget = { tenant_id: 1, targets: 1, _id: -1 } as const;
export const byTenantAndActor = { tenant_id: 1, actors: 1, _id: -1 } as const;
export const byTenantAndKind = { tenant_id: 1, kind: 1, _id: -1 } as const;

const ids = { bsonType: "array", items: { bsonType: "binData" } };
const principal = {
  bsonType: "object",
  properties: {
    application_id: { bsonType: "binData" },
    session_id: { bsonType: "binData" },
    key_id: { bsonType: "binData" },
  },
};
const state = {
  bsonType: "object",
  required: ["permissions", "rules"],
  properties: {
    name: { bsonType: "string" },
    disabled: { bsonType: "bool" },
    permissions: { bsonType: "array", items: { bsonType: "string" } },
    rules: { bsonType: "array", items: { bsonType: "object" } },
    allowed_origins: { bsonType: "array", items: { bsonType: "string" } },
    allowed_cidrs: { bsonType: "array", items: { bsonType: "string" } },
    session_quota: { bsonType: "int" },
    expires_at: { bsonType: "date" },
  },
};

/** The retention of events is in milliseconds. */
export const eventCollections = (eventRetention: number): CollectionSpec[] => [
  {
    name: eventsName,
    indexes: [
      { key: { at: 1 }, options: { expireAfterSeconds: Math.ceil(eventRetention / 1_000) } },
      { key: byTenantNewest, options: {} },
      { key: byTenantAndTarget, options: {} },
      { key: byTenantAndActor, options: {} },
      { key: byTenantAndKind, options: {} },
    ],
    schema: {
      bsonType: "object",
      required: ["_id", "tenant_id", "at", "kind", "outcome", "target", "actors", "targets"],
      properties: {
        _id: { bsonType: "binData" },
        tenant_id: { bsonType: "binData" },
        at: { bsonType: "date" },
        kind: { bsonType: "string" },
        outcome: { enum: ["success", "denied"] },
        actor: principal,
        target: principal,
        actors: ids,
        targets: ids,
        before: state,
        after: state,
        reason: { bsonType: "string" },
        method: { bsonType: "string" },
        request_id: { bsonType: "string" },
        address: { bsonType: "string" },
        count: { bsonType: "number" },
        ends_at: { bsonType: "date" },
      },
    },
  },
  {
    name: responsesName,
    indexes: [{ key: { expires_at: 1 }, options: { expireAfterSeconds: 0 } }],
    schema: {
      bsonType: "object",
      required: ["_id", "sealed", "expires_at"],
      properties: {
        _id: { bsonType: "binData" },
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
      },
    },
  },
];
