import { createHmac } from "node:crypto";
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  RuleRecordSchema,
  SessionRecordSchema,
} from "../../gen/latchkey/store/v1/records_pb.js";
import { AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import { CreateApplicationRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import type { Grants } from "../contract/grants.js";
import { createConverter } from "../contract/message-converter.js";
import type { FieldViolation } from "../contract/problems.js";
import { Problem } from "../errors.js";
import type { EventRecord } from "../store/port/events.js";
import type { ApplicationFields, SessionFields } from "../store/port/records.js";
import { findOversizedGrants } from "../validation/grants-size.js";
import { findQuotaViolations, findRestrictionViolations } from "../validation/restrictions.js";
import { assertValidMessage, throwViolations, validateMessage } from "../validation/validate.js";
import { findDisallowedGrants, findMissingContainers } from "../validation/violations.js";

/** Rules of container paths whose violation does not prevent an import. */
const containerPathRule = "string.container_path";
const conditionPathRule = "access_rule_condition.container_path";

export interface CheckedRecord {
  /** Violations that prevent the import. */
  readonly violations: readonly FieldViolation[];
  /** A violation of the current API. The record is imported nevertheless, so that its keys keep working. */
  readonly warning?: FieldViolation | undefined;
}

export function checkApplication(record: ApplicationFields, grantsLimit: number): CheckedRecord {
  const { type } = record;
  /** The request that would create the application. */
  const request = toRequest(CreateApplicationRequestSchema, ApplicationRecordSchema, record);
  const problem = validateMessage(CreateApplicationRequestSchema, request);
  const violations = catchViolations(() => {
    assertValidRecord(ApplicationRecordSchema, record);
    if (problem) {
      assertValidMessage(CreateApplicationRequestSchema, request, containerPathRule);
    }
    throwViolations([
      ...findMissingContainers(type, record),
      ...findRestrictionViolations(type, record),
      ...findOversizedGrants(record, grantsLimit),
      ...findQuotaViolations(type, record.sessionQuota),
    ]);
  });
  const [warning] = problem?.violations ?? findDisallowedGrants(type, record);
  return { violations, warning };
}

/** Violations of a session, which has no grants until it is authorized. */
export function findSessionViolations(
  record: SessionFields,
  grantsLimit: number,
): readonly FieldViolation[] {
  const { authorizedAt, authorizedBy, permissions, rules } = record;
  if ((authorizedAt === undefined) !== (authorizedBy === undefined)) {
    return [{ field: "authorized_by", message: "must be set together with authorized_at" }];
  }
  if (authorizedAt === undefined && (permissions.length > 0 || rules.length > 0)) {
    const message = "is required if permissions or rules are granted";
    return [{ field: "authorized_at", message }];
  }
  return catchViolations(() => {
    assertValidRecord(SessionRecordSchema, record);
    if (authorizedAt !== undefined) {
      const request = toRequest(AuthorizeSessionRequestSchema, SessionRecordSchema, record);
      // A placeholder: the nonce is used, and only its hash is stored.
      request.nonce = "-";
      assertValidMessage(AuthorizeSessionRequestSchema, request, conditionPathRule);
      throwViolations(findOversizedGrants(record, grantsLimit));
    }
  });
}

export function findEventViolations(record: EventRecord): readonly FieldViolation[] {
  return catchViolations(() => assertValidRecord(EventRecordSchema, record));
}

function assertValidRecord<Desc extends DescMessage>(schema: Desc, record: object): void {
  assertValidMessage(schema, create(schema, record as MessageInitShape<Desc>));
}

const toRule = createConverter(AccessRuleSchema, { shareNested: true });

/** A request with the fields of a record that have the same name and type in both, and with its rules. */
function toRequest<Desc extends DescMessage>(
  schema: Desc,
  recordSchema: DescMessage,
  record: object,
): MessageShape<Desc> {
  const fields: Record<string, unknown> = {};
  for (const { localName, fieldKind, scalar, message } of schema.fields) {
    const own = recordSchema.field[localName];
    if (own?.message === RuleRecordSchema) {
      fields[localName] = (record as Grants).rules.map(toRule);
    } else if (own?.fieldKind === fieldKind && own.scalar === scalar && own.message === message) {
      fields[localName] = (record as Readonly<Record<string, unknown>>)[localName];
    }
  }
  return create(schema, fields as MessageInitShape<Desc>);
}

function catchViolations(check: () => void): readonly FieldViolation[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof Problem) {
      return error.violations;
    }
    throw error;
  }
}

/** Hashed with each pepper, to identify the pepper without revealing it. */
const fixedText = "latchkey: a check of the pepper";

/** Returns a check value for each pepper, including the empty one, which stands for no pepper. */
export function pepperChecks(peppers: readonly string[]): string[] {
  return peppers.map((pepper) => createHmac("sha256", pepper).update(fixedText).digest("base64"));
}

/** Returns the positions, from one, of check values whose pepper is not configured here. */
export function unknownPeppers(checks: readonly string[], peppers: readonly string[]): number[] {
  const known = new Set(pepperChecks(peppers));
  return checks.flatMap((check, index) => (known.has(check) ? [] : [index + 1]));
}
