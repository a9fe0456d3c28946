import { type ApplicationType, canManage, holds } from "../../contract/grants.js";
import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationRecord, KeyUse } from "./records.js";

export interface ApplicationStore {
  /** Whether the store has no application. */
  isEmpty(): Promise<boolean>;

  /** Finds an application of any tenant, for authentication. */
  find(id: string): MaybePromise<ApplicationRecord | undefined>;

  /** Finds several applications. The results are in the order of the ids. */
  findMany(ids: readonly string[]): MaybePromise<readonly (ApplicationRecord | undefined)[]>;

  /** Finds an expired application that is still stored, to explain why its key is refused. */
  findExpired(id: string): MaybePromise<ApplicationRecord | undefined>;

  /**
   * Finds the id of the application that has an imported key with one of these
   * hashes, expired or not. If several have it, returns the only unexpired one,
   * if any.
   */
  findByImportedKey(hashes: readonly Uint8Array[]): MaybePromise<string | undefined>;

  /**
   * Lists applications of a tenant, by default newest (greatest id) first.
   * Throws the reason of the signal when it aborts.
   */
  list(query: ListQuery, signal?: AbortSignal): Promise<ApplicationPage>;

  /**
   * Records when applications and their keys were last used. Ignores missing
   * applications and uses that are older than the stored one. The version of the
   * record stays the same, and no change is reported.
   */
  recordUses(uses: readonly KeyUse[]): Promise<void>;
}

/** All given conditions must match. */
export interface ApplicationFilter {
  readonly type?: ApplicationType | undefined;
  readonly disabled?: boolean | undefined;
  /** Held directly or by a rule. */
  readonly permission?: string | undefined;
  /** Case-insensitive. */
  readonly namePrefix?: string | undefined;
  /** At most one application has it. */
  readonly externalId?: string | undefined;
  /** The id of one of its keys. At most one application has it. */
  readonly keyId?: string | undefined;
  readonly createdBy?: string | undefined;
  /** All must occur in the name, the description or the external id: see {@link toWords}. */
  readonly words?: readonly string[] | undefined;
  readonly expiresBefore?: number | undefined;
  /** Last used before this time, or created before it and never used. */
  readonly lastUsedBefore?: number | undefined;
  readonly neverUsed?: true | undefined;
}

/**
 * The order of a list: newest first; by name; by expiry, without applications
 * that do not expire; by last use, longest unused first.
 */
export type ListOrder = "newest" | "name" | "expires_at" | "last_used_at";

export interface ListQuery {
  readonly tenantId: string;
  /** Lists only these ids. */
  readonly ids?: readonly string[] | undefined;
  readonly filter?: ApplicationFilter | undefined;
  /** Default: `newest`. */
  readonly order?: ListOrder | undefined;
  readonly size: number;
  /** A page by number, with a total, or the items after a position. */
  readonly from: { readonly page: number } | ListPosition;
  /** The most applications that a search for words reads. Default: 10,000. */
  readonly scanLimit?: number | undefined;
}

export const defaultScanLimit = 10_000;

/** The position of an item in a list. The item need not exist any more. */
export interface ListPosition {
  /** The id of the item. */
  readonly after: string;
  /** The sort value of the item, in orders other than `newest`. */
  readonly value?: string | number | undefined;
}

export interface ApplicationPage {
  /** Fewer than requested if they are large. The position of a page by number does not depend on that. */
  readonly items: readonly ApplicationRecord[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
  /** The number of all items. Only for pages by number, and not if a search stopped early. */
  readonly total?: number | undefined;
  /** Where a search for words stopped at its scan limit. Absent if it reached the end or filled the page. */
  readonly stoppedAt?: ListPosition | undefined;
}

/** Index keys are short, so only this many characters of a name are sorted by. */
const foldedLength = 100;

/** The case-insensitive form of a name for search and order. */
export function foldName(name: string): string {
  return [...foldCase(name)].slice(0, foldedLength).join("");
}

function foldCase(text: string): string {
  // A final sigma must match a prefix in which it is not final.
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** The form of a text for search: an accent may be typed as a character of its own. */
function searchable(text: string): string {
  return foldCase(text.normalize());
}

/** The words of a search text, in their case-insensitive form. */
export function toWords(text: string): string[] {
  return searchable(text)
    .split(/\s+/)
    .filter((word) => word !== "");
}

/** Whether every word occurs in the name, the description or the external id of an application. */
export function hasWords(
  { name, description, externalId }: ApplicationRecord,
  words: readonly string[],
): boolean {
  const texts = [name, description ?? "", externalId ?? ""].map(searchable);
  return words.every((word) => texts.some((text) => text.includes(word)));
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

export function listPositionOf(order: ListOrder, record: ApplicationRecord): ListPosition {
  const value = orderValue(order, record);
  return { after: record.id, value: order === "newest" ? undefined : value };
}

/** Whether an application matches a filter. The order `expires_at` lists only applications that expire. */
export function matchesFilter(
  record: ApplicationRecord,
  filter: ApplicationFilter,
  order: ListOrder,
): boolean {
  const { type, disabled, permission, namePrefix, externalId } = filter;
  const { keyId, createdBy, words, expiresBefore, lastUsedBefore, neverUsed } = filter;
  const expiry = record.expiresAt ?? Number.POSITIVE_INFINITY;
  return (
    (order !== "expires_at" || Number.isFinite(expiry)) &&
    (type === undefined || record.type === type) &&
    (disabled === undefined || record.disabled === disabled) &&
    (externalId === undefined || record.externalId === externalId) &&
    (keyId === undefined || record.keys.some(({ id }) => id === keyId)) &&
    (createdBy === undefined || record.createdBy === createdBy) &&
    (expiresBefore === undefined || expiry < expiresBefore) &&
    (lastUsedBefore === undefined || lastUseOf(record) < lastUsedBefore) &&
    (neverUsed === undefined || record.lastUsedAt === undefined) &&
    (namePrefix === undefined || foldName(record.name).startsWith(foldName(namePrefix))) &&
    (permission === undefined || holds(record, permission)) &&
    (words === undefined || hasWords(record, words))
  );
}

/** Compares applications in an order. */
export function compareBy(
  order: ListOrder,
): (one: ApplicationRecord, other: ApplicationRecord) => number {
  const compare = comparePositions(order);
  return (one, other) => compare(listPositionOf(order, one), listPositionOf(order, other));
}

/** Compares positions in an order. Texts compare by their bytes, as in the engines. */
export function comparePositions(
  order: ListOrder,
): (one: ListPosition, other: ListPosition) => number {
  return (one, other) => {
    const byId = Number(one.after > other.after) - Number(one.after < other.after);
    if (order === "newest") {
      return -byId;
    }
    return compareValues(one.value ?? "", other.value ?? "") || byId;
  };
}

function compareValues(one: string | number, other: string | number): number {
  return typeof one === "number"
    ? one - Number(other)
    : Buffer.compare(Buffer.from(one), Buffer.from(String(other)));
}

type Managing = Pick<ApplicationRecord, "disabled" | "permissions" | "rules">;

/** Whether an application, until it expires, can create and update applications. */
export function isManager({ disabled, permissions, rules }: Managing): boolean {
  return !disabled && canManage({ permissions, rules });
}

/** Whether a tenant may be left without a manager when an application is changed or deleted. */
export function stopsManaging(
  before: ApplicationRecord | undefined,
  after: ApplicationRecord | undefined,
): boolean {
  return before !== undefined && isManager(before) && !(after && isManager(after));
}

/**
 * The external id that a new or changed application must not share with another
 * one. An unchanged one counts if the expiry changes: at the previous expiry,
 * another application may take it over.
 */
export function claimedExternalId(
  before: ApplicationRecord | undefined,
  after: ApplicationRecord,
): string | undefined {
  const isUnchanged =
    before?.externalId === after.externalId && before?.expiresAt === after.expiresAt;
  return isUnchanged ? undefined : after.externalId;
}

/** When the last application that manages a tenant expires. */
export interface ManagerExpiration {
  readonly tenantId: string;
  readonly at: number;
}
