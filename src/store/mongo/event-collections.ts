/** Declares the collections for events, stored responses and the checkpoints of expiration scans. */
import type { CollectionSpec } from "./collections.js";

export const eventsName = "events";
export const responsesName = "answers";
export const checkpointsName = "marks";

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
