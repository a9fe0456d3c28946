export const tokenRead = { permissions: ["token:read"] };

/** A rule as applications have them. */
export const containerRule = { priority: 1, container: "/pci/", transform: "mask", ...tokenRead };

/** A rule as sessions have them. */
export const sessionRule = {
  priority: 1,
  transform: "reveal",
  conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/" }],
  ...tokenRead,
};

export function without(field: keyof typeof containerRule) {
  return { ...containerRule, [field]: undefined };
}

export function withCondition(change: object) {
  const [condition] = sessionRule.conditions;
  return { rules: [{ ...sessionRule, conditions: [{ ...condition, ...change }] }] };
}
