import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { type AccessRule, AccessRuleSchema } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import {
  type Application,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
  type UpdateApplicationRequest,
  UpdateApplicationRequestSchema,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";
import { serviceNow } from "../../sign-in/connection.js";
import { type Expiry, expiryOf, noExpiry } from "./expiry-field.js";

/** The form state of an application. */
export interface Draft {
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
  /** One per line. */
  readonly allowedOrigins: string;
  readonly allowedCidrs: string;
  /** A number, or empty for the default. */
  readonly sessionQuota: string;
  readonly expiry: Expiry;
}

export const emptyDraft: Draft = {
  name: "",
  type: "private",
  permissions: [],
  rules: [],
  allowedOrigins: "",
  allowedCidrs: "",
  sessionQuota: "",
  expiry: noExpiry,
};

export function draftOf(application: Application): Draft {
  const { name, permissions, rules } = application;
  return {
    ...{ name, permissions, rules },
    type: application.type as ApplicationType,
    allowedOrigins: application.allowedOrigins.join("\n"),
    allowedCidrs: application.allowedCidrs.join("\n"),
    sessionQuota: application.sessionQuota?.toString() ?? "",
    // Set only at creation.
    expiry: noExpiry,
  };
}

export function createRequestOf(draft: Draft): CreateApplicationRequest {
  const expiresAt = expiryOf(draft.expiry, serviceNow());
  return create(CreateApplicationRequestSchema, {
    ...fieldsOf(draft),
    type: draft.type,
    ...(expiresAt && { expiresAt }),
  });
}

export function updateRequestOf(
  draft: Draft,
  { id, version }: Pick<Application, "id" | "version">,
): UpdateApplicationRequest {
  return create(UpdateApplicationRequestSchema, {
    ...fieldsOf(draft),
    id,
    ifMatch: version,
    // The form has all of them, so an empty one is cleared.
    updateMask: { paths: ["allowed_origins", "allowed_cidrs", "session_quota"] },
  });
}

type SharedFields = Pick<
  MessageInitShape<typeof UpdateApplicationRequestSchema>,
  "name" | "permissions" | "rules" | "allowedOrigins" | "allowedCidrs" | "sessionQuota"
>;

function fieldsOf({ type, ...draft }: Draft): SharedFields {
  return {
    name: draft.name,
    permissions: [...draft.permissions],
    rules: [...draft.rules],
    // Only public applications have origins. The draft may still contain some after a change of type.
    allowedOrigins: type === "public" ? parseLines(draft.allowedOrigins) : [],
    allowedCidrs: parseLines(draft.allowedCidrs),
    ...(type === "public" && draft.sessionQuota !== "" && { sessionQuota: parseQuota(draft) }),
  };
}

/** Anything but an integer becomes 0, which validation refuses. */
function parseQuota({ sessionQuota }: Pick<Draft, "sessionQuota">): number {
  const quota = Number(sessionQuota);
  return Number.isInteger(quota) && Math.abs(quota) < 2 ** 31 ? quota : 0;
}

const fields = [
  ...(["name", "type", "expiry", "permissions", "rules"] as const),
  ...(["allowedOrigins", "allowedCidrs", "sessionQuota"] as const),
] as const satisfies readonly (keyof Draft)[];
export type DraftField = (typeof fields)[number];

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

function isSame(field: DraftField, one: Draft, other: Draft): boolean {
  if (field === "rules") {
    return (
      one.rules.length === other.rules.length &&
      one.rules.every((rule, index) => equals(AccessRuleSchema, rule, other.rules[index] ?? rule))
    );
  }
  return JSON.stringify(one[field]) === JSON.stringify(other[field]);
}

/** The non-empty lines. */
export function parseLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
