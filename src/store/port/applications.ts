import { heldPermissions, holds } from "../../contract/grants.js";
import type { ApplicationChange, ApplicationRecord } from "./records.js";
import type { ApplicationFilter, ListOrder, Place } from "./store.js";

/** How many characters of a name count for its order: an index takes only so much. */
const foldedLength = 100;

/** A name as it is searched and ordered by: upper and lower case are the same. */
export function foldName(name: string): string {
  // At its end a word has another small sigma, which its beginning must be found by as well.
  const folded = name.toLowerCase().replaceAll("ς", "σ");
  return [...folded].slice(0, foldedLength).join("");
}

/** Since when an application has not been used. One that never was counts from its making. */
export function idleSince({
  lastUsedAt,
  createdAt,
}: Pick<ApplicationRecord, "lastUsedAt" | "createdAt">): number {
  // The clock of whoever noted the use may be behind that of the store.
  return Math.max(createdAt, lastUsedAt ?? createdAt);
}

/** What decides the place of an application in an order, before its id does. */
function orderValue(order: ListOrder, record: ApplicationRecord): string | number {
  switch (order) {
    case "name":
      return foldName(record.name);
    case "expires_at":
      return record.expiresAt ?? Number.POSITIVE_INFINITY;
    case "last_used_at":
      return idleSince(record);
    default:
      return 0;
  }
}

/** The place of an application in an order. */
export function placeOf(order: ListOrder, record: ApplicationRecord): Place {
  const value = orderValue(order, record);
  return { after: record.id, value: order === "newest" ? undefined : value };
}

/** Whether an application is one that is searched for, in an order that only those with an end are in. */
export function isSearched(
  record: ApplicationRecord,
  filter: ApplicationFilter,
  order: ListOrder,
): boolean {
  const { type, disabled, permission, namePrefix, expiresBefore, lastUsedBefore } = filter;
  const end = record.expiresAt ?? Number.POSITIVE_INFINITY;
  return (
    (order !== "expires_at" || Number.isFinite(end)) &&
    (type === undefined || record.type === type) &&
    (disabled === undefined || record.disabled === disabled) &&
    (expiresBefore === undefined || end < expiresBefore) &&
    (lastUsedBefore === undefined || idleSince(record) < lastUsedBefore) &&
    (namePrefix === undefined || foldName(record.name).startsWith(foldName(namePrefix))) &&
    (permission === undefined || heldPermissions(record).includes(permission))
  );
}

/** Tells which of two applications comes first. Texts are ordered by their bytes, as engines do. */
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

/** Whether an application comes after a place. */
export function isBehind(record: ApplicationRecord, place: Place, order: ListOrder): boolean {
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
