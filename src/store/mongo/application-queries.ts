import { BSON, type Collection, type Document, type Sort } from "mongodb";
import { createPace } from "../../lib/event-loop.js";
import {
  type ApplicationFilter,
  type ApplicationPage,
  compareBy,
  defaultScanLimit,
  foldName,
  hasWords,
  type ListOrder,
  type ListPosition,
  type ListQuery,
  listPositionOf,
} from "../port/applications.js";
import type { ApplicationRecord } from "../port/records.js";
import { createPageBudget } from "../port/store.js";
import { byExpiry, byManager, byTenant, managerFilter, searchIndexes } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  type ApplicationDocument,
  expiredByIndex,
  notExpired,
  type Time,
  toApplication,
  uuid,
  withoutLog,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { pageOptions, readPage } from "./read-page.js";

interface ApplicationList {
  readonly documents: Collection<ApplicationDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

/** Lists applications of a tenant in the requested order. */
export async function listApplications(
  list: ApplicationList,
  query: ListQuery,
  signal?: AbortSignal,
): Promise<ApplicationPage> {
  const words = query.filter?.words;
  if (words) {
    return searchApplications(list, query, words, signal);
  }
  const { documents, time, freshRead } = list;
  const { size, from, order = "newest" } = query;
  const skip = "page" in from ? (from.page - 1) * size : 0;
  const filter = { ...toFilter(query), ...notExpired(time) };
  const found = documents.find<Uint8Array>(filter, {
    sort: sorts[order],
    skip,
    hint: indexFor(query),
    signal,
    projection: withoutLog,
    ...pageOptions(size),
    ...limitsOf(documents),
    ...freshRead(),
  });
  const { items, more } = await callDriver(() => readPage(found, size, decodeApplication));
  if (!("page" in from)) {
    return { items, more };
  }
  // The last page gives the total. Otherwise the count, which is taken slightly
  // later, must not contradict the page.
  const reached = skip + items.length;
  if (!more && (items.length > 0 || skip === 0)) {
    return { items, more, total: reached };
  }
  const total = await count(list, query, signal);
  return { items, more, total: more ? Math.max(total, reached + 1) : Math.min(total, skip) };
}

function decodeApplication(bytes: Uint8Array): ApplicationRecord {
  return toApplication(BSON.deserialize(bytes) as ApplicationDocument);
}

/** Counts in the index. Reads only expired documents that are not deleted yet, which are few. */
async function count(
  { documents, time, freshRead }: ApplicationList,
  query: ListQuery,
  signal: AbortSignal | undefined,
): Promise<number> {
  const all = toFilter(query);
  const readOptions = { signal, ...limitsOf(documents), ...freshRead() };
  const [stored, expired] = await Promise.all([
    callDriver(() => documents.countDocuments(all, { hint: indexFor(query), ...readOptions })),
    callDriver(() =>
      documents.countDocuments(
        { ...all, ...expiredByIndex(time) },
        { hint: byExpiry, ...readOptions },
      ),
    ),
  ]);
  return Math.max(stored - expired, 0);
}

/** What a search for words reads of each application: its texts, its position in every order, and its size. */
const searched = {
  name: 1,
  description: 1,
  external_id: 1,
  expires_at: 1,
  created_at: 1,
  last_used_at: 1,
  size: { $bsonSize: { $unsetField: { field: "last", input: "$$ROOT" } } },
} as const;

type SearchedDocument = ApplicationDocument & { readonly size: number };

/**
 * Searches for words up to the scan limit. They are compared here, because
 * MongoDB folds the case of ASCII letters only.
 */
async function searchApplications(
  { documents, time, freshRead }: ApplicationList,
  query: ListQuery,
  words: readonly string[],
  signal: AbortSignal | undefined,
): Promise<ApplicationPage> {
  const { tenantId, size, from, order = "newest", scanLimit = defaultScanLimit } = query;
  const isPage = "page" in from;
  const skip = isPage ? (from.page - 1) * size : 0;
  const readOptions = { signal, ...limitsOf(documents), ...freshRead() };
  const budget = createPageBudget();
  const found: ApplicationRecord[] = [];
  /** Whether a match follows the page. */
  let more = false;
  let rows = 0;
  let matched = 0;
  let lastRead: ApplicationRecord | undefined;
  let stoppedAt: ListPosition | undefined;
  await callDriver(async () => {
    const cursor = documents.find<SearchedDocument>(
      { ...toFilter(query), ...notExpired(time) },
      {
        sort: sorts[order],
        limit: scanLimit + 1,
        hint: indexFor(query),
        projection: searched,
        batchSize: 1_000,
        ...readOptions,
      },
    );
    const pace = createPace(tenantId, () => signal?.throwIfAborted());
    for await (const document of cursor) {
      if (rows++ === scanLimit && lastRead) {
        stoppedAt = listPositionOf(order, lastRead);
        break;
      }
      await pace();
      lastRead = toApplication(document);
      if (hasWords(lastRead, words) && matched++ >= skip && !more) {
        more = found.length === size || !budget.tryAdd(document.size);
        if (!more) {
          found.push(lastRead);
        }
      }
      if (!isPage && more) {
        break;
      }
    }
  });
  const ids = found.map(({ id }) => uuid(id));
  const complete = await callDriver(() =>
    documents.find({ _id: { $in: ids } }, { projection: withoutLog, ...readOptions }).toArray(),
  );
  const items = complete.map(toApplication).sort(compareBy(order));
  const page = { items, more };
  if (stoppedAt) {
    return { ...page, stoppedAt };
  }
  return isPage ? { ...page, total: matched } : page;
}

const sorts: Readonly<Record<ListOrder, Sort>> = {
  newest: { _id: -1 },
  name: { folded_name: 1, _id: 1 },
  expires_at: { expires_at: 1, _id: 1 },
  last_used_at: { idle_since: 1, _id: 1 },
};

/** The most selective index with the requested order. One that finds a single application needs no order. */
function indexFor({ ids, filter = {}, order = "newest" }: ListQuery) {
  if (filter.externalId !== undefined) {
    return searchIndexes.external_id;
  }
  if (filter.keyId !== undefined) {
    return searchIndexes.key_id;
  }
  if (order !== "newest") {
    return searchIndexes[order];
  }
  if (ids) {
    return byTenant;
  }
  if (filter.permission !== undefined) {
    return searchIndexes.permission;
  }
  if (filter.disabled) {
    return searchIndexes.disabled;
  }
  if (filter.createdBy !== undefined) {
    return searchIndexes.created_by;
  }
  return filter.type === undefined ? byTenant : searchIndexes.type;
}

function toFilter({ tenantId, ids, filter = {}, order = "newest", from }: ListQuery): Document {
  const position = "page" in from ? undefined : from;
  const conditions = [
    ...conditionsOf(filter),
    ...(order === "expires_at" ? [{ expires_at: { $exists: true } }] : []),
    ...(ids ? [{ _id: { $in: ids.map(uuid) } }] : []),
    ...(position ? after(position, order) : []),
  ];
  return { tenant_id: uuid(tenantId), ...(conditions.length > 0 && { $and: conditions }) };
}

function conditionsOf(filter: ApplicationFilter): Document[] {
  const { type, disabled, permission, namePrefix, externalId, keyId, createdBy } = filter;
  const { expiresBefore, lastUsedBefore, neverUsed } = filter;
  const prefix = namePrefix === undefined ? undefined : foldName(namePrefix);
  const fields = {
    type,
    disabled: disabled === false ? { $ne: true } : disabled,
    held_permissions: permission,
    external_id: externalId,
    "keys.id": keyId === undefined ? undefined : uuid(keyId),
    created_by: createdBy === undefined ? undefined : uuid(createdBy),
    folded_name: prefix === undefined ? undefined : { $gte: prefix, $lt: `${prefix}\u{10ffff}` },
    expires_at: expiresBefore === undefined ? undefined : { $lt: new Date(expiresBefore) },
    idle_since: lastUsedBefore === undefined ? undefined : { $lt: new Date(lastUsedBefore) },
    last_used_at: neverUsed && { $exists: false },
  };
  return Object.entries(fields).flatMap(([name, condition]) =>
    condition === undefined ? [] : [{ [name]: condition }],
  );
}

/** Matches the applications that follow a position in the list. */
function after({ after, value }: ListPosition, order: ListOrder): Document[] {
  const id = uuid(after);
  switch (order) {
    case "newest":
      return [{ _id: { $lt: id } }];
    case "name":
      return afterValue("folded_name", value, id);
    case "expires_at":
      return afterValue("expires_at", new Date(Number(value)), id);
    case "last_used_at":
      return afterValue("idle_since", new Date(Number(value)), id);
  }
}

/** The first condition is redundant: with it, the index scan starts at the value. */
function afterValue(field: string, value: unknown, id: unknown): Document[] {
  return [
    { [field]: { $gte: value } },
    { $or: [{ [field]: { $gt: value } }, { [field]: value, _id: { $gt: id } }] },
  ];
}

/** Finds another application that manages the same tenant and matches a filter. */
export function findOtherManager(
  documents: Collection<ApplicationDocument>,
  { id, tenantId }: Pick<ApplicationRecord, "id" | "tenantId">,
  filter: Document,
): Promise<Pick<ApplicationDocument, "_id" | "rev"> | null> {
  const others = { tenant_id: uuid(tenantId), disabled: { $ne: true }, _id: { $ne: uuid(id) } };
  const options = {
    projection: { _id: 1, rev: 1 },
    hint: byManager,
    ...limitsOf(documents),
  } as const;
  return callDriver(() => documents.findOne({ ...others, ...managerFilter, ...filter }, options));
}
