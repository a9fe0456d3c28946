import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import type { AccessRule } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import {
  type Application,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
  type UpdateApplicationRequest,
  UpdateApplicationRequestSchema,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";
import { updateMaskOf } from "../../../../src/contract/update-mask.js";
import { serviceNow } from "../../ui/service-clock.js";
import { type Expiry, fromExpiry, isSameExpiry, noExpiry, toExpiry } from "./expiry-field.js";
import { fromPairs, type Pair, toPairs } from "./metadata-field.js";

/** The form state of an application. Its fields are those of the requests. */
export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly externalId: string;
  readonly metadata: readonly Pair[];
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
  /** One per line. */
  readonly allowedOrigins: string;
  readonly allowedCidrs: string;
  /** A number, or empty for the default. */
  readonly sessionQuota: string;
  readonly expiresAt: Expiry;
}

export const emptyDraft: Draft = {
  name: "",
  description: "",
  externalId: "",
  metadata: [],
  type: "private",
  permissions: [],
  rules: [],
  allowedOrigins: "",
  allowedCidrs: "",
  sessionQuota: "",
  expiresAt: noExpiry,
};

export function draftOf(application: Application): Draft {
  const { name, description = "", externalId = "", permissions, rules } = application;
  return {
    name,
    description,
    externalId,
    permissions,
    rules,
    metadata: toPairs(application.metadata),
    type: application.type as ApplicationType,
    allowedOrigins: application.allowedOrigins.join("\n"),
    allowedCidrs: application.allowedCidrs.join("\n"),
    sessionQuota: application.sessionQuota?.toString() ?? "",
    expiresAt: toExpiry(application.expiresAt),
  };
}

export function createRequestOf(draft: Draft): CreateApplicationRequest {
  return create(CreateApplicationRequestSchema, {
    ...fieldsOf(draft),
    ...expiryFieldOf(draft),
    type: draft.type,
  });
}

export function updateRequestOf(draft: Draft, before: Application): UpdateApplicationRequest {
  // The form shows the expiry to the second, so it is sent only if it was changed.
  const changesExpiry = changedFields(draftOf(before), draft).includes("expiresAt");
  const { expiresAt } = UpdateApplicationRequestSchema.field;
  // The form has all fields, so an empty one is cleared.
  const updated = updateMaskOf(UpdateApplicationRequestSchema)?.updatable.filter(
    (field) => changesExpiry || field !== expiresAt,
  );
  return create(UpdateApplicationRequestSchema, {
    ...fieldsOf(draft),
    ...(changesExpiry && expiryFieldOf(draft)),
    id: before.id,
    ifMatch: before.version,
    updateMask: { paths: updated?.map(({ name }) => name) ?? [] },
  });
}

/** The fields of both requests. */
function fieldsOf({ type, ...draft }: Draft) {
  const sessionQuota = draft.sessionQuota.trim();
  return {
    name: draft.name,
    description: draft.description,
    externalId: draft.externalId,
    metadata: fromPairs(draft.metadata),
    permissions: [...draft.permissions],
    rules: [...draft.rules],
    // Only public applications have origins. The draft may still contain some after a change of type.
    allowedOrigins: type === "public" ? parseLines(draft.allowedOrigins) : [],
    allowedCidrs: parseLines(draft.allowedCidrs),
    ...(type === "public" && sessionQuota !== "" && { sessionQuota: parseQuota(sessionQuota) }),
  } satisfies MessageInitShape<typeof UpdateApplicationRequestSchema>;
}

function expiryFieldOf(draft: Draft) {
  const expiresAt = fromExpiry(draft.expiresAt, serviceNow());
  return expiresAt ? { expiresAt } : {};
}

/** Anything but an integer becomes 0, which validation refuses. */
function parseQuota(text: string): number {
  const quota = Number(text);
  return Number.isInteger(quota) && Math.abs(quota) < 2 ** 31 ? quota : 0;
}

export type DraftField = keyof Draft;
const fields = Object.keys(emptyDraft) as DraftField[];

/** The field name of the service. */
export function fieldName(field: DraftField): string {
  return CreateApplicationRequestSchema.field[field].name;
}

interface MergedDraft {
  readonly draft: Draft;
  /** Fields that both sides changed to different values. */
  readonly conflicts: readonly DraftField[];
}

/** A three-way merge: own changes win, all other fields take the latest values. */
export function mergeDrafts(base: Draft, mine: Draft, theirs: Draft): MergedDraft {
  const changed = changedFields(base, mine);
  const draft = { ...theirs, ...Object.fromEntries(changed.map((field) => [field, mine[field]])) };
  const conflicts = changed.filter(
    (field) => !isSame(field, base, theirs) && !isSame(field, mine, theirs),
  );
  return { draft, conflicts };
}

export function changedFields(before: Draft, after: Draft): DraftField[] {
  return fields.filter((field) => !isSame(field, before, after));
}

/** Compares the values of a request, because different input may mean the same. */
function isSame(field: DraftField, one: Draft, other: Draft): boolean {
  return field === "expiresAt"
    ? isSameExpiry(one.expiresAt, other.expiresAt)
    : equals(CreateApplicationRequestSchema, requestWith(field, one), requestWith(field, other));
}

/** A request with only this field. */
function requestWith(
  field: Exclude<DraftField, "expiresAt">,
  draft: Draft,
): CreateApplicationRequest {
  const values: MessageInitShape<typeof CreateApplicationRequestSchema> = {
    ...fieldsOf(draft),
    type: draft.type,
  };
  return create(CreateApplicationRequestSchema, { [field]: values[field] });
}

/** The non-empty lines. */
export function parseLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
