import fc, { type Arbitrary } from "fast-check";
import type { RuleRecord } from "../../src/contract/grants.js";
import type { CredentialState, EventRecord, Principal } from "../../src/store/port/events.js";
import type { KeyRecord } from "../../src/store/port/records.js";
import type { ImportedApplication, ImportedSession } from "../../src/store/port/transfer.js";

/** Records such as a store may hold, whatever they are. What may be absent is undefined now and then. */
const id = fc.uuid();
const datedId = fc.uuid({ version: 7 });
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const moment = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
const count = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const name = fc
  .string({ unit: fc.constantFrom(..."aZ9é日 _.$-"), maxLength: 20 })
  .map((s) => `x${s}`);
const permission = fc.constantFrom("token:read", "token:create", "a:b:c", "token:use");
const permissions = fc.uniqueArray(permission);
const somePermissions = fc.uniqueArray(permission, { minLength: 1 });

const maybe = <T>(value: Arbitrary<T>): Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function rules(fields: Record<string, Arbitrary<unknown>>): Arbitrary<RuleRecord[]> {
  const rule = fc.record({
    description: maybe(name),
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
  createdAt: moment,
  expiresAt: maybe(moment),
  lastUsedAt: maybe(moment),
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
    createdBy: maybe(id),
    createdAt: moment,
    modifiedBy: maybe(id),
    modifiedAt: maybe(moment),
    expiresAt: maybe(moment),
    sessionQuota: maybe(fc.integer({ min: 1, max: 1_000_000 })),
    lastUsedAt: maybe(moment),
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
  createdAt: moment,
  expiresAt: moment,
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
    authorizedAt: moment,
    authorizedBy: id,
  }),
);

const party: Arbitrary<Principal> = fc.record({
  applicationId: maybe(id),
  sessionId: maybe(id),
  keyId: maybe(id),
});

const state: Arbitrary<CredentialState> = fc.record({
  name: maybe(text),
  disabled: maybe(fc.boolean()),
  permissions,
  rules: sessionRules,
  allowedOrigins: maybe(fc.array(text)),
  allowedCidrs: maybe(fc.array(text)),
  sessionQuota: maybe(count),
  expiresAt: maybe(moment),
});

export const anyEvent: Arbitrary<EventRecord> = fc.record({
  id: datedId,
  tenantId: id,
  at: moment,
  kind: fc.constantFrom("application.updated", "key.regenerated", "session.created"),
  outcome: fc.constantFrom("success", "denied"),
  actor: maybe(party),
  target: party,
  before: maybe(state),
  after: maybe(state),
  reason: maybe(text),
  method: maybe(text),
  requestId: maybe(text),
  address: maybe(text),
  count: maybe(count),
  endsAt: maybe(moment),
});
