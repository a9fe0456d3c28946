import { useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";

/** Tells rules apart while they are edited and moved, as they have no names of their own. */
export interface RuleIds {
  of(rule: AccessRule): string;
  /** The rule with other values in some fields. It is still the same one. */
  change(rule: AccessRule, fields: Partial<AccessRule>): AccessRule;
}

function createRuleIds(): RuleIds {
  const ids = new WeakMap<AccessRule, string>();
  let count = 0;

  function of(rule: AccessRule): string {
    const id = ids.get(rule) ?? `rule-${++count}`;
    ids.set(rule, id);
    return id;
  }

  return {
    of,
    change(rule, fields) {
      const changed = { ...rule, ...fields };
      ids.set(changed, of(rule));
      return changed;
    },
  };
}

export function useRuleIds(): RuleIds {
  const [ids] = useState(createRuleIds);
  return ids;
}
