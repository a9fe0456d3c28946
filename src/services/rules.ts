import { hash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { RuleRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import { type AccessRule, AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import type { Grants, RuleRecord } from "../contract/grants.js";
import { createConverter } from "../contract/message-converter.js";

const idLength = 16;

/** Identifies what a rule grants: the same for rules that differ only in priority, description or the order of their lists. */
export function ruleId({ container, conditions, transform, permissions }: RuleRecord): string {
  const content = [
    container ?? null,
    conditions
      .map(({ attribute, operator, value }) => JSON.stringify([attribute, operator, value]))
      .sort(),
    transform,
    permissions.length > 1 ? [...permissions].sort() : permissions,
  ];
  return hash("sha256", JSON.stringify(content), "hex").slice(0, idLength);
}

const toFields = createConverter(AccessRuleSchema, { shareNested: true });
const readRule = createConverter(RuleRecordSchema, { shareNested: true, withDefaults: true });

/** Shows stored rules in a response, with their ids. */
export function toAccessRules(
  rules: readonly RuleRecord[],
): MessageInitShape<typeof AccessRuleSchema>[] {
  return rules.map((rule) => Object.assign(toFields(rule), { id: ruleId(rule) }));
}

/** Shows grants in a response. */
export function showGrants({ permissions, rules }: Grants) {
  return { permissions: [...permissions], rules: toAccessRules(rules) };
}

/** Takes the grants of a request. The ids of its rules are ignored. */
export function readGrants({
  permissions,
  rules,
}: {
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
}): Grants {
  return { permissions, rules: rules.map(readRule) as unknown as RuleRecord[] };
}
