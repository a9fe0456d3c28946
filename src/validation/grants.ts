import type { ApplicationType, Grants } from "../contract/grants.js";
import { mayHold } from "../contract/methods.js";
import type { FieldViolation } from "../contract/problems.js";

/** Returns the grants that an application of this type cannot have. The console uses it too, so it must run in browsers. */
export function unsuitedGrants(type: ApplicationType, grants: Grants): FieldViolation[] {
  return [...missingContainers(type, grants), ...unsuitedPermissions(type, grants)];
}

/** Returns the rules without a container, where this type of application requires one. */
export function missingContainers(type: ApplicationType, { rules }: Grants): FieldViolation[] {
  const message = `is required in the rules of a ${type} application`;
  return rules.flatMap(({ container }, at) =>
    container === undefined && type !== "management"
      ? [{ field: `rules[${at}].container`, message }]
      : [],
  );
}

function unsuitedPermissions(
  type: ApplicationType,
  { permissions, rules }: Grants,
): FieldViolation[] {
  return [
    ...permissions.flatMap((permission, at) => unsuited(type, permission, `permissions[${at}]`)),
    ...rules.flatMap((rule, at) =>
      rule.permissions.flatMap((permission, index) =>
        unsuited(type, permission, `rules[${at}].permissions[${index}]`),
      ),
    ),
  ];
}

function unsuited(type: ApplicationType, permission: string, field: string): FieldViolation[] {
  return mayHold(type, permission)
    ? []
    : [{ field, message: `${permission} cannot be granted to a ${type} application: remove it` }];
}
