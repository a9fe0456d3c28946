import { heldPermissions, holds } from "../../contract/grants.js";
import type { ApplicationChange, ApplicationRecord } from "./records.js";
import type { ApplicationFilter, ListOrder, Place } from "./store.js";

/** Index keys are short, so only this many characters of a name are sorted by. */
const foldedLength = 100;

/** The case-insensitive form of a name for search and order. */
export function foldName(name: string): string {
  // A final sigma must match a prefix in which it is not final.
  const folded = name.toLowerCase().replaceAll("ς", "σ");
  return [...folded].slice(0, foldedLength).join("");
}

/** When an application was last used, or created if it never was. */
export function lastUseOf({
  lastUsedAt,
  createdAt,
}: Pick<ApplicationRecord, "lastUsedAt" | "createdAt">): number {
  // Uses are recorded by the clock of a process, which may be behind that of the store.
  return Math.max(createdAt, lastUsedAt ?? createdAt);
}

/** The sort value of an application, before its id. */
function orderValue(order: ListOrder, record: ApplicationRecord): string | number {
  switch (order) {
    case "name":
      return foldName(record.name);
    case "expires_at":
      return record.expiresAt ?? Number.POSITIVE_INFINITY;
    case "last_used_at":
      return lastUseOf(record);
    default:
      return 0;
  }
}

export function placeOf(order: ListOrder, record: ApplicationRecord): Place {
  const value = orderValue(order, record);
  return { after: record.id, value: order === "newest" ? undefined : value };
}

/** Whether an application matches a filter. The order `expires_at` lists only applications that expire. */
export function matchesFilter(
  record: ApplicationRecord,
  filter: ApplicationFilter,
  order: ListOrder,
): boolean {
  const { type, disabled, permission, namePrefix, expiresBefore, lastUsedBefore } = filter;
  const expiry = record.expiresAt ?? Number.POSITIVE_INFINITY;
  return (
    (order !== "expires_at" || Number.isFinite(expiry)) &&
    (type === undefined || record.type === type) &&
    (disabled === undefined || record.disabled === disabled) &&
    (expiresBefore === undefined || expiry < expiresBefore) &&
    (lastUsedBefore === undefined || lastUseOf(record) < lastUsedBefore) &&
    (namePrefix === undefined || foldName(record.name).startsWith(foldName(namePrefix))) &&
    (permission === undefined || heldPermissions(record).includes(permission))
  );
}

/** Compares applications in an order. Texts compare by their bytes, as in the engines. */
export function compareBy(
  order: ListOrder,
): (one: ApplicationRecord, other: ApplicationRecord) => number {
  return (one, other) => {
    const byId = one.id < other.id ? -1 : 1;
    if (order === "newest") {
      return -byId;
    }
    return compareValues(orderValue(order, one), orderValue(order, other)) || byId;
  };
}

/** Whether an application follows a place in an order. */
export function isAfterPlace(record: ApplicationRecord, place: Place, order: ListOrder): boolean {
  if (order === "newest") {
    return record.id < place.after;
  }
  const compared = compareValues(orderValue(order, record), place.value ?? "");
  return compared > 0 || (compared === 0 && record.id > place.after);
}

function compareValues(one: string | number, other: string | number): number {
  return typeof one === "number"
    ? one - Number(other)
    : Buffer.compare(Buffer.from(one), Buffer.from(String(other)));
}

/** An application with all of these permissions manages its tenant. */
export const managerPermissions = ["application:create", "application:update"] as const;

type Managing = Pick<ApplicationRecord, "disabled" | "permissions" | "rules">;

/** Whether an application, until it expires, can create and update applications. */
export function isManager({ disabled, permissions, rules }: Managing): boolean {
  return (
    !disabled && managerPermissions.every((permission) => holds({ permissions, rules }, permission))
  );
}

/** Whether an application that manages its tenant no longer does after a change. */
export function stopsManaging(current: ApplicationRecord, change: ApplicationChange): boolean {
  const { disabled, permissions, rules } = change;
  const mayStop = disabled || permissions !== undefined || rules !== undefined;
  return (
    mayStop === true &&
    isManager(current) &&
    !isManager({
      disabled: disabled ?? current.disabled,
      permissions: permissions ?? current.permissions,
      rules: rules ?? current.rules,
    })
  );
}

/** When the last application that manages a tenant expires. */
export interface ManagerExpiration {
  readonly tenantId: string;
  readonly at: number;
}
