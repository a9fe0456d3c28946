import { equals } from "@bufbuild/protobuf";
import { AccessRuleSchema } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import type { Draft } from "./draft.js";

const fields = [
  ...(["name", "type", "expiry", "permissions", "rules"] as const),
  ...(["allowedOrigins", "allowedCidrs", "sessionQuota"] as const),
] as const satisfies readonly (keyof Draft)[];
export type DraftField = (typeof fields)[number];

export interface MergedDraft {
  readonly draft: Draft;
  /** What both have changed, in different ways. */
  readonly contested: readonly DraftField[];
}

/**
 * Brings together what two people made of the same application: what I have
 * changed stays as I have it, and all else becomes what it is now.
 */
export function mergeDrafts(base: Draft, mine: Draft, theirs: Draft): MergedDraft {
  const kept = changedFields(base, mine);
  const draft = { ...theirs, ...Object.fromEntries(kept.map((field) => [field, mine[field]])) };
  const contested = kept.filter(
    (field) => !isSame(field, base, theirs) && !isSame(field, mine, theirs),
  );
  return { draft, contested };
}

export function changedFields(before: Draft, after: Draft): DraftField[] {
  return fields.filter((field) => !isSame(field, before, after));
}

function isSame(field: DraftField, one: Draft, other: Draft): boolean {
  if (field === "rules") {
    return (
      one.rules.length === other.rules.length &&
      one.rules.every((rule, at) => equals(AccessRuleSchema, rule, other.rules[at] ?? rule))
    );
  }
  return JSON.stringify(one[field]) === JSON.stringify(other[field]);
}
