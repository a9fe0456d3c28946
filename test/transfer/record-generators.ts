import fc, { type Arbitrary } from "fast-check";
import type { RuleRecord } from "../../src/contract/grants.js";
import type { CredentialState, EventRecord, Principal } from "../../src/store/port/events.js";
import type { KeyRecord } from "../../src/store/port/records.js";
import type { ImportedApplication, ImportedSession } from "../../src/store/port/transfer.js";

// Generators of arbitrary records. Optional fields are sometimes undefined.

const id = fc.uuid();
const timeOrderedId = fc.uuid({ version: 7 });
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const time = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
const count = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const name = fc
  .string({ unit: fc.constantFrom(..."aZ9é日 _.$-"), maxLength: 20 })
  .map((s) => `x${s}`);
const permission = fc.constantFrom("token:read", "token:create", "a:b:c", "token:use");
const permissions = fc.uniqueArray(permission);
const somePermissions = fc.uniqueArray(permission, { minLength: 1 });

const optional = <T>(value: Arbitrary<T>): Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function rules(fields: Record<string, Arbitrary<unknown>>): Arbitrary<RuleRecord[]> {
  const rule = fc.record({
    description: optional(name),
    priority: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    container: fc.constant(undefined),
    conditions: fc.constant([]),
    transform: fc.constantFrom("redact", "mask", "reveal"),
    permissions: somePermissions,
    ...fields,
  });
  return fc.array(rule as unknown as Arbitrary<RuleRecord>, { maxLength: 3 });
}

const applicationRules = rules({ container: name.map((one) => `/${one}/`) });
const sessionRules = rules({
  conditions: fc.array(
    fc.record({
      attribute: fc.constantFrom("id", "container"),
      operator: fc.constantFrom("equals", "starts_with"),
      value: name,
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

const key: Arbitrary<KeyRecord> = fc.record({
  id,
  hash,
  foreign: fc.constantFrom(true, undefined),
  createdAt: time,
  expiresAt: optional(time),
  lastUsedAt: optional(time),
});

export const anyApplication: Arbitrary<ImportedApplication> = fc
  .record({
    id,
    tenantId: id,
    name,
    type: fc.constantFrom("private", "public", "management"),
    disabled: fc.boolean(),
    permissions: somePermissions,
    rules: applicationRules,
    allowedOrigins: fc.constantFrom([], ["https://shop.example"]),
    allowedCidrs: fc.constantFrom([], ["10.0.0.0/8", "2001:db8::/32"]),
    keys: fc.array(key, { maxLength: 3 }),
    sessionEpoch: count,
    createdBy: optional(id),
    createdAt: time,
    modifiedBy: optional(id),
    modifiedAt: optional(time),
    expiresAt: optional(time),
    sessionQuota: optional(fc.integer({ min: 1, max: 1_000_000 })),
    lastUsedAt: optional(time),
  })
  .map((record) =>
    record.type === "public" ? record : { ...record, allowedOrigins: [], sessionQuota: undefined },
  );

const openSession = {
  id,
  tenantId: id,
  applicationId: id,
  epoch: count,
  keyHash: hash,
  nonceHash: hash,
  createdAt: time,
  expiresAt: time,
};

export const anySession: Arbitrary<ImportedSession> = fc.oneof(
  fc.record({
    ...openSession,
    permissions: fc.constant([]),
    rules: fc.constant([]),
    authorizedAt: fc.constant(undefined),
    authorizedBy: fc.constant(undefined),
  }),
  fc.record({
    ...openSession,
    permissions: somePermissions,
    rules: sessionRules,
    authorizedAt: time,
    authorizedBy: id,
  }),
);

const principal: Arbitrary<Principal> = fc.record({
  applicationId: optional(id),
  sessionId: optional(id),
  keyId: optional(id),
});

const state: Arbitrary<CredentialState> = fc.record({
  name: optional(text),
  disabled: optional(fc.boolean()),
  permissions,
  rules: sessionRules,
  allowedOrigins: optional(fc.array(text)),
  allowedCidrs: optional(fc.array(text)),
  sessionQuota: optional(count),
  expiresAt: optional(time),
});

export const anyEvent: Arbitrary<EventRecord> = fc.record({
  id: timeOrderedId,
  tenantId: id,
  at: time,
  kind: fc.constantFrom("application.updated", "key.regenerated", "session.created"),
  outcome: fc.constantFrom("success", "denied"),
  actor: optional(principal),
  target: principal,
  before: optional(state),
  after: optional(state),
  reason: optional(text),
  method: optional(text),
  requestId: optional(text),
  address: optional(text),
  count: optional(count),
  endsAt: optional(time),
});
