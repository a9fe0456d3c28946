import { type DescField, getOption } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  type UpdateApplicationRequest,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { OutputOnly, output_only } from "../../../gen/latchkey/v1/options_pb.js";
import { checkGrantsAllowed } from "../../auth/grants.js";
import { overlong, repeatedFieldsOf } from "../../contract/fields.js";
import type { Grants } from "../../contract/grants.js";
import { createConverter } from "../../contract/message-converter.js";
import type { FieldViolation } from "../../contract/problems.js";
import { readUpdatedFields, type UpdateMask, updateMaskOf } from "../../contract/update-mask.js";
import { invalidRequest } from "../../errors.js";
import type { ApplicationChange, ApplicationRecord } from "../../store/port/records.js";
import { checkRestrictions, checkSessionQuota } from "../../validation/restrictions.js";
import { checkFuture, fromTimestamp } from "../../validation/time.js";
import { readGrants } from "../rules.js";
import { toApplication } from "./messages.js";
import { checkVersion } from "./update-application.js";

type Fields = Omit<ApplicationChange, "modifiedBy">;

/** What an update changes. */
export interface Update {
  /** Whether it names no field. */
  readonly isEmpty: boolean;
  /** The lists of grants that it replaces. */
  readonly grants: Grants;
  /** Returns the changed fields, or throws if the application cannot have them. */
  changesOf(current: ApplicationRecord, now: number): Fields;
}

const mask = updateMaskOf(UpdateApplicationRequestSchema) as UpdateMask;
const { metadata: metadataField } = UpdateApplicationRequestSchema.field;
const readFields = createConverter(UpdateApplicationRequestSchema, {
  values: { time: timestampMs },
  shareNested: true,
});

/** Reads the fields that a request changes: those that its update mask names. Empty ones are cleared. */
export function readUpdate(request: UpdateApplicationRequest): Update {
  const updated = readUpdatedFields(mask, request);
  const expiry = updated.has(UpdateApplicationRequestSchema.field.expiresAt) && request.expiresAt;
  const values = {
    ...readFields(request),
    rules: readGrants(request).rules,
    ...(expiry && { expiresAt: fromTimestamp(expiry, "expires_at") }),
  } as Record<string, unknown>;
  const fields: Fields = Object.fromEntries(
    mask.updatable
      .filter(updated.has)
      .map((field) => [field.localName, valueOrEmpty(field, values[field.localName])]),
  );
  const { permissions = [], rules = [] } = fields;
  const metadataKeys = updated.keysOf(metadataField);
  return {
    isEmpty: Object.keys(fields).length === 0 && metadataKeys.length === 0,
    grants: { permissions, rules },

    changesOf(current, now) {
      checkVersion(current, request.version);
      checkEchoed(request, current);
      const metadata = mergeMetadata(current, request, metadataKeys);
      const changes = { ...fields, ...(metadata && { metadata }) };
      checkChanges(current, changes, now);
      return changes;
    },
  };
}

/** Throws if a field that only the service sets differs from that of the application. */
function checkEchoed(request: UpdateApplicationRequest, current: ApplicationRecord): void {
  const shown = toApplication(current) as Application;
  const violations = UpdateApplicationRequestSchema.fields
    .filter((field) => getOption(field, output_only) === OutputOnly.EQUAL)
    .flatMap(({ name, localName }): FieldViolation[] => {
      const given = comparable(request[localName as keyof UpdateApplicationRequest]);
      const actual = comparable(shown[localName as keyof Application]);
      const message = `cannot be changed by an update: send ${describe(actual)}`;
      return given === undefined || given === actual ? [] : [{ field: name, message }];
    });
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
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
  const limit = repeatedFieldsOf(UpdateApplicationRequestSchema).find(
    ({ name }) => name === metadataField.name,
  );
  if (limit && pairs.length > limit.maxSize) {
    throw invalidRequest(overlong(metadataField.name, limit));
  }
  return Object.fromEntries(pairs);
}

/** Throws if the application cannot have the changed fields. Others may have been imported, and stay. */
function checkChanges(current: ApplicationRecord, changes: Fields, now: number): void {
  const { type } = current;
  const { permissions, rules, expiresAt, sessionQuota } = changes;
  const isWithoutGrants = [permissions ?? current.permissions, rules ?? current.rules].every(
    ({ length }) => length === 0,
  );
  if ((permissions || rules) && isWithoutGrants) {
    const message = "permissions and rules are both empty: add at least one permission or rule";
    throw invalidRequest({ field: "request", message });
  }
  if (typeof expiresAt === "number") {
    checkFuture(expiresAt, now);
  }
  checkGrantsAllowed(type, { permissions: permissions ?? [], rules: rules ?? [] });
  const { allowedOrigins = [], allowedCidrs = [] } = changes;
  checkRestrictions(type, { allowedOrigins, allowedCidrs });
  checkSessionQuota(type, sessionQuota ?? undefined);
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
