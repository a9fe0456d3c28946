import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { RuleRecord } from "../../src/contract/grants.js";
import { ruleId } from "../../src/services/rules.js";

const text = fc.string({ unit: fc.constantFrom(...'ab",[]:\\\ud800'), maxLength: 6 });
const condition = fc.record({ attribute: text, operator: text, value: text });
const rule = fc.record(
  {
    priority: fc.nat(),
    description: text,
    container: text,
    conditions: fc.array(condition, { maxLength: 3 }),
    transform: text,
    permissions: fc.array(text, { maxLength: 3 }),
  },
  { requiredKeys: ["priority", "conditions", "transform", "permissions"] },
) as fc.Arbitrary<RuleRecord>;

/** What a rule grants, as text. Lists are sets. */
function contentOf({ container, conditions, transform, permissions }: RuleRecord): string {
  const sorted = (items: readonly unknown[]) => items.map((item) => JSON.stringify(item)).sort();
  const ordered = conditions.map(({ attribute, operator, value }) => [attribute, operator, value]);
  return JSON.stringify([container, sorted(ordered), transform, sorted(permissions)]);
}

describe("the id of a rule", () => {
  it("depends on what the rule grants, not on its priority, description or order", () => {
    fc.assert(
      fc.property(
        rule,
        fc.nat(),
        fc.option(text, { nil: undefined }),
        (one, priority, description) => {
          const other = {
            ...one,
            priority,
            description,
            conditions: one.conditions.toReversed(),
            permissions: one.permissions.toReversed(),
          };
          expect(ruleId(other)).toBe(ruleId(one));
        },
      ),
    );
  });

  it("differs for rules that grant something else", () => {
    fc.assert(
      fc.property(rule, rule, (one, other) => {
        expect(ruleId(one) === ruleId(other)).toBe(contentOf(one) === contentOf(other));
      }),
    );
  });

  it("stays the same in later versions", () => {
    const known = {
      priority: 1,
      container: "/pci/",
      conditions: [],
      transform: "mask",
      permissions: ["token:read"],
    };
    expect(ruleId(known)).toBe("fdb5d1a6cc6b184c");
  });
});
