import type { ApplicationType, Grants } from "../contract/grants.js";
import { mayHold } from "../contract/methods.js";
import type { FieldViolation } from "../contract/problems.js";

/** What an application of this type cannot have of the grants. Pages ask it too: it runs in browsers. */
export function unsuitedGrants(type: ApplicationType, grants: Grants): FieldViolation[] {
  return [...missingContainers(type, grants), ...unsuitedPermissions(type, grants)];
}

/** The rules that lack the container that those of an application of this type have. */
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
      rule.permissions.flatMap((permission, place) =>
        unsuited(type, permission, `rules[${at}].permissions[${place}]`),
      ),
    ),
  ];
}

function unsuited(type: ApplicationType, permission: string, field: string): FieldViolation[] {
  return mayHold(type, permission)
    ? []
    : [{ field, message: `${permission} cannot be given to a ${type} application` }];
}
