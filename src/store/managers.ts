import { holds } from "./application-search.js";
import type { ApplicationChange, ApplicationRecord } from "./store.js";

/** The permissions that, held together, let an application manage the others of its tenant. */
export const managerPermissions = ["application:create", "application:update"] as const;

/** An application as far as it decides whether it manages its tenant. */
type Managing = Pick<ApplicationRecord, "disabled" | "permissions" | "rules">;

/** Whether an application, while it has not expired, can create and update applications. */
export function isManager({ disabled, permissions, rules }: Managing): boolean {
  return (
    !disabled && managerPermissions.every((permission) => holds({ permissions, rules }, permission))
  );
}

/** Whether a change takes from an application that it manages its tenant. */
export function stopsManaging(current: ApplicationRecord, change: ApplicationChange): boolean {
  const { disabled, permissions, rules } = change;
  const isTouched = disabled || permissions !== undefined || rules !== undefined;
  return (
    isTouched === true &&
    isManager(current) &&
    !isManager({
      disabled: disabled ?? current.disabled,
      permissions: permissions ?? current.permissions,
      rules: rules ?? current.rules,
    })
  );
}

/** When the last application that manages a tenant expires. */
export interface ManagerEnd {
  readonly tenantId: string;
  readonly at: number;
}

/** The change would leave a tenant without an application that manages it. Nothing is written. */
export class LastManager extends Error {
  override readonly name = "LastManager";

  constructor() {
    super("No other enabled application of the tenant can create and update applications.");
  }
}
