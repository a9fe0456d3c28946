import { isDeepStrictEqual } from "node:util";
import { type DescField, getOption, type Message } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { message as messageRules } from "../../../gen/buf/validate/validate_pb.js";
import {
  type Application,
  type UpdateApplicationRequest,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { OutputOnly, output_only } from "../../../gen/latchkey/v1/options_pb.js";
import type { Settings } from "../../config/settings.js";
import { overlong, repeatedFieldsOf } from "../../contract/fields.js";
import { createConverter } from "../../contract/message-converter.js";
import type { FieldViolation } from "../../contract/problems.js";
import { readUpdatedFields, type UpdateMask, updateMaskOf } from "../../contract/update-mask.js";
import type { ApplicationRecord } from "../../store/port/records.js";
import { findOversizedGrants } from "../../validation/grants-size.js";
import { findQuotaViolations, findRestrictionViolations } from "../../validation/restrictions.js";
import { findExpiryViolations, fromTimestamp } from "../../validation/time.js";
import { throwViolations } from "../../validation/validate.js";
import { findDisallowedGrants } from "../../validation/violations.js";
import { readGrants } from "../rules.js";
import { toApplication } from "./messages.js";
import { type ApplicationUpdate, assertVersion, type ChangedFields } from "./update-application.js";

const mask = updateMaskOf(UpdateApplicationRequestSchema) as UpdateMask;
const { metadata: metadataField } = UpdateApplicationRequestSchema.field;
const readFields = createConverter(UpdateApplicationRequestSchema, {
  values: { time: timestampMs },
  shareNested: true,
});

/**
 * Reads the fields that a request changes: those that its update mask names. Empty ones are cleared.
 * Returns the change of an application. It throws if the application cannot have these fields.
 */
export function readUpdate(
  request: UpdateApplicationRequest,
  { grantsLimit }: Pick<Settings, "grantsLimit">,
): ApplicationUpdate<object>["change"] {
  const updated = readUpdatedFields(mask, request);
  const expiry = updated.has(UpdateApplicationRequestSchema.field.expiresAt) && request.expiresAt;
  const values = {
    ...readFields(request),
    rules: readGrants(request).rules,
    ...(expiry && { expiresAt: fromTimestamp(expiry, "expires_at") }),
  } as Record<string, unknown>;
  const fields: ChangedFields = Object.fromEntries(
    mask.updatable
      .filter(updated.has)
      .map((field) => [field.localName, valueOrEmpty(field, values[field.localName])]),
  );
  const { permissions, rules } = fields;
  const given = { permissions: permissions ?? [], rules: rules ?? [] };
  // Found here, because in the transaction it would block other writes.
  const oversized = findOversizedGrants(given, grantsLimit);

  /** Finds grants that are too large, alone or together with those that the application keeps. */
  function findOversized(current: ApplicationRecord): FieldViolation[] {
    const keepsSome = (permissions === undefined) !== (rules === undefined);
    if (oversized.length > 0 || !keepsSome) {
      return oversized;
    }
    const all = {
      permissions: permissions ?? current.permissions,
      rules: rules ?? current.rules,
    };
    return findOversizedGrants(all, grantsLimit);
  }

  const metadataKeys = updated.keysOf(metadataField);
  return (current, now) => {
    assertVersion(current, request.version);
    const metadata = mergeMetadata(current, request, metadataKeys);
    const changes = { ...fields, ...(metadata && { metadata }) };
    throwViolations([
      ...findUnequal(request, current),
      ...findOverlongMetadata(metadata),
      ...findOversized(current),
      ...findChangeViolations(current, changes, now),
    ]);
    return isChanged(current, changes) ? changes : undefined;
  };
}

/** Whether a change sets any field to another value. */
function isChanged(current: ApplicationRecord, changes: ChangedFields): boolean {
  return Object.entries(changes).some(([name, value]) => {
    const before = current[name as keyof ApplicationRecord];
    return !isDeepStrictEqual(before, value ?? undefined);
  });
}

const outputOnlyFields = UpdateApplicationRequestSchema.fields.filter(
  (field) => getOption(field, output_only) === OutputOnly.EQUAL,
);

/** Finds fields that only the service sets and that differ from those of the application. */
function findUnequal(
  request: UpdateApplicationRequest,
  current: ApplicationRecord,
): FieldViolation[] {
  const given = outputOnlyFields.filter(
    ({ localName }) => valueIn(request, localName) !== undefined,
  );
  if (given.length === 0) {
    return [];
  }
  const shown = toApplication(current) as Application;
  return given.flatMap(({ name, localName }): FieldViolation[] => {
    const actual = comparable(valueIn(shown, localName));
    const message = `cannot be changed by an update: send ${describe(actual)}`;
    return comparable(valueIn(request, localName)) === actual
      ? []
      : [{ field: name, message, code: "output_only" }];
  });
}

function valueIn(message: Message, localName: string): unknown {
  return (message as unknown as Readonly<Record<string, unknown>>)[localName];
}

/** A text, or the milliseconds of a time. Ids are the same in upper case. */
function comparable(value: unknown): string | number | undefined {
  if (value === undefined) {
    return undefined;
  }
  return typeof value === "string" ? value.toLowerCase() : timestampMs(value as Timestamp);
}

function describe(value: string | number | undefined): string {
  const text = typeof value === "number" ? new Date(value).toISOString() : value;
  return text === undefined ? "none" : `${text}, or none`;
}

/** The metadata after keys were set or removed. `undefined` if there are none. */
function mergeMetadata(
  { metadata: current }: ApplicationRecord,
  { metadata: given }: UpdateApplicationRequest,
  keys: readonly string[],
): ApplicationRecord["metadata"] | undefined {
  if (keys.length === 0) {
    return undefined;
  }
  const changed = new Set(keys);
  const pairs = [
    ...Object.entries(current).filter(([key]) => !changed.has(key)),
    ...Object.entries(given).filter(([key]) => changed.has(key)),
  ];
  return Object.fromEntries(pairs);
}

function findOverlongMetadata(metadata: ApplicationRecord["metadata"] = {}): FieldViolation[] {
  const limit = repeatedFieldsOf(UpdateApplicationRequestSchema).find(
    ({ name }) => name === metadataField.name,
  );
  return limit && Object.keys(metadata).length > limit.maxSize
    ? [overlong(metadataField.name, limit)]
    : [];
}

/** The rule of an update that leaves no grants. */
const emptyGrantsRule = "update_application.grants";

const emptyGrants = getOption(UpdateApplicationRequestSchema, messageRules)
  .cel.filter(({ id }) => id === emptyGrantsRule)
  .map(({ id, message }): FieldViolation => ({ field: "request", message, code: id }));

/** Finds changed fields that the application cannot have. Others may have been imported, and stay. */
function findChangeViolations(
  current: ApplicationRecord,
  changes: ChangedFields,
  now: number,
): FieldViolation[] {
  const { type } = current;
  const { permissions, rules, expiresAt, sessionQuota } = changes;
  const { allowedOrigins = [], allowedCidrs = [] } = changes;
  const isWithoutGrants = [permissions ?? current.permissions, rules ?? current.rules].every(
    ({ length }) => length === 0,
  );
  return [
    ...((permissions || rules) && isWithoutGrants ? emptyGrants : []),
    ...(typeof expiresAt === "number" ? findExpiryViolations(expiresAt, now) : []),
    ...findDisallowedGrants(type, { permissions: permissions ?? [], rules: rules ?? [] }),
    ...findRestrictionViolations(type, { allowedOrigins, allowedCidrs }),
    ...findQuotaViolations(type, sessionQuota ?? undefined),
  ];
}

function valueOrEmpty({ fieldKind }: DescField, value: unknown): unknown {
  switch (fieldKind) {
    case "list":
      return value ?? [];
    case "map":
      return value ?? {};
    default:
      return value === undefined || value === "" ? null : value;
  }
}
