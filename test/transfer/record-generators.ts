import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import fc, { type Arbitrary } from "fast-check";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  RuleRecordSchema,
  SessionRecordSchema,
} from "../../gen/latchkey/store/v1/records_pb.js";
import { AccessRuleConditionSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import type { RuleRecord } from "../../src/contract/grants.js";
import { formatOf } from "../../src/contract/message-converter.js";
import type { EventRecord } from "../../src/store/port/events.js";
import type { ApplicationFields, SessionFields } from "../../src/store/port/records.js";

// Generators of arbitrary records with all fields of their messages. Optional
// fields are sometimes absent. Fields with rules of their own are overridden.

const id = fc.uuid();
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const time = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
const count = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const text = fc
  .string({ unit: fc.constantFrom(..."aZ9é日 _.$-"), maxLength: 20 })
  .map((s) => `x${s}`);
const permission = fc.constantFrom("token:read", "token:create", "a:b:c", "token:use");
const somePermissions = fc.uniqueArray(permission, { minLength: 1 });

/** Generators by the TypeScript names of fields. */
type Overrides = Readonly<Record<string, Arbitrary<unknown>>>;

/** Any plain object with the fields of a message. Overrides apply to nested messages too. */
function anyRecord(schema: DescMessage, overrides: Overrides): Arbitrary<unknown> {
  const isRequired = ({ fieldKind, proto }: DescField) =>
    fieldKind === "list" ||
    fieldKind === "map" ||
    (fieldKind === "scalar" && !proto.proto3Optional);
  return fc.record(
    Object.fromEntries(
      schema.fields.map((field) => [
        field.localName,
        overrides[field.localName] ?? anyValue(field, overrides),
      ]),
    ),
    { requiredKeys: schema.fields.filter(isRequired).map(({ localName }) => localName) },
  );
}

function anyValue(field: DescField, overrides: Overrides): Arbitrary<unknown> {
  const item = field.message ? anyRecord(field.message, overrides) : anyScalar(field);
  switch (field.fieldKind) {
    case "list":
      return fc.array(item, { maxLength: 3 });
    case "map":
      return fc.dictionary(text, item, { maxKeys: 3, noNullPrototype: true });
    default:
      return item;
  }
}

function anyScalar(field: DescField): Arbitrary<unknown> {
  const format = formatOf(field);
  if (format !== "other") {
    return { id, time, bytes: hash }[format];
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.INT32:
      return count;
    default:
      throw new Error(`${field.name} needs a generator`);
  }
}

function rules(fields: Overrides): Arbitrary<readonly RuleRecord[]> {
  const rule = anyRecord(RuleRecordSchema, {
    priority: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    transform: fc.constantFrom("redact", "mask", "reveal"),
    permissions: somePermissions,
  }) as Arbitrary<RuleRecord>;
  const ruleWithFields = fc
    .tuple(rule, fc.record(fields))
    .map(([rule, given]) => ({ ...rule, ...given }));
  return fc.array(ruleWithFields, { maxLength: 3 });
}

const applicationRules = rules({
  container: text.map((one) => `/${one}/`),
  conditions: fc.constant([]),
});

const sessionRules = rules({
  container: fc.constant(undefined),
  conditions: fc.array(
    anyRecord(AccessRuleConditionSchema, {
      attribute: fc.constantFrom("id", "container"),
      operator: fc.constantFrom("equals", "starts_with"),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

const applicationFields = anyRecord(ApplicationRecordSchema, {
  type: fc.constantFrom("private", "public", "management"),
  permissions: somePermissions,
  rules: applicationRules,
  allowedOrigins: fc.constantFrom([], ["https://shop.example"]),
  allowedCidrs: fc.constantFrom([], ["10.0.0.0/8", "2001:db8::/32"]),
  sessionQuota: fc.integer({ min: 1, max: 1_000_000 }),
}) as Arbitrary<ApplicationFields>;

export const anyApplication = applicationFields.map((record): ApplicationFields => {
  const { sessionQuota: _, ...others } = record;
  return record.type === "public" ? record : { ...others, allowedOrigins: [] };
});

const authorizedSession = anyRecord(SessionRecordSchema, {
  permissions: somePermissions,
  rules: sessionRules,
}) as Arbitrary<SessionFields>;

export const anySession = fc
  .tuple(authorizedSession, time, id, fc.boolean())
  .map(([record, authorizedAt, authorizedBy, isAuthorized]): SessionFields => {
    const { authorizedAt: _, authorizedBy: __, authorizationEpoch, ...open } = record;
    const networkHash = record.networkHash.subarray(0, 8);
    return isAuthorized
      ? { ...open, authorizedAt, authorizedBy, authorizationEpoch, networkHash: new Uint8Array() }
      : { ...open, authorizationEpoch: 0, networkHash, permissions: [], rules: [] };
  });

export const anyEvent = fc
  .tuple(
    anyRecord(EventRecordSchema, {
      id: fc.uuid({ version: 7 }),
      kind: fc.constantFrom("application.updated", "key.regenerated", "session.authorized"),
      outcome: fc.constantFrom("success", "denied"),
      rules: sessionRules,
    }) as Arbitrary<EventRecord>,
    id,
  )
  .map(
    ([event, applicationId]): EventRecord => ({
      ...event,
      target: event.target ?? { applicationId },
    }),
  );
