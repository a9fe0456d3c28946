/** Decides which records are live, from the parents that tables.ts declares. */
import type { LiveRecords, RecordKind, Records } from "../port/change.js";
import { type ApplicationRecord, isUnexpired } from "../port/records.js";
import { childrenOf, parentsOf } from "../tables.js";

/** Finds a parent by its id. All parents are applications. */
type FindParent = (id: string) => ApplicationRecord | undefined;

/** The ids of the records that a record ends with, each once. */
export function parentIdsOf<K extends RecordKind>(
  kind: K,
  record: Omit<Records[K], "version">,
): string[] {
  const ids: string[] = [];
  for (const [, parent] of parentsOf[kind]) {
    const id = parent.id(record as Records[K]);
    if (id !== undefined && !ids.includes(id)) {
      ids.push(id);
    }
  }
  return ids;
}

/** A record with its parents, or `undefined` if one of them is not stored. */
export function withParents<K extends RecordKind>(
  kind: K,
  record: Records[K],
  find: FindParent,
): LiveRecords[K] | undefined {
  const parents = parentsOf[kind];
  if (parents.length === 0) {
    return record as unknown as LiveRecords[K];
  }
  const found: Record<string, unknown> = { [kind]: record };
  for (const [name, { id }] of parents) {
    const parentId = id(record);
    if (parentId !== undefined) {
      const parent = find(parentId);
      if (!parent) {
        return undefined;
      }
      found[name] = parent;
    }
  }
  return found as unknown as LiveRecords[K];
}

function recordOf<K extends RecordKind>(kind: K, found: LiveRecords[K]): Records[K] {
  const hasParents = parentsOf[kind].length > 0;
  return (hasParents ? (found as unknown as Record<K, unknown>)[kind] : found) as Records[K];
}

function parentOf(found: object, name: string): ApplicationRecord | undefined {
  return (found as Readonly<Record<string, ApplicationRecord | undefined>>)[name];
}

/** Whether a record was revoked, with a parent or by a new epoch of one. */
export function isRevoked<K extends RecordKind>(
  kind: K,
  found: LiveRecords[K] | undefined,
): boolean {
  if (found === undefined) {
    return true;
  }
  const record = recordOf(kind, found);
  for (const [name, { epoch, currentEpoch }] of parentsOf[kind]) {
    const parent = parentOf(found, name);
    if (parent && epoch(record) !== currentEpoch(parent)) {
      return true;
    }
  }
  return false;
}

/** Whether a record is unexpired and not revoked. It expires with its parents. */
export function isLive<K extends RecordKind>(
  kind: K,
  found: LiveRecords[K] | undefined,
  now: number,
): found is LiveRecords[K] {
  if (isRevoked(kind, found) || !isUnexpired(recordOf(kind, found as LiveRecords[K]), now)) {
    return false;
  }
  for (const [name] of parentsOf[kind]) {
    const parent = parentOf(found as object, name);
    if (parent && !isUnexpired(parent, now)) {
      return false;
    }
  }
  return true;
}

/** The kinds of records that end when a record is changed or removed. */
export function endedChildrenOf(
  kind: RecordKind,
  before: Records[RecordKind] | undefined,
  after: Records[RecordKind] | undefined,
) {
  return childrenOf[kind].filter(({ parent: { currentEpoch } }) => {
    const [one, other] = [before, after] as (ApplicationRecord | undefined)[];
    return one && (!other || currentEpoch(one) !== currentEpoch(other));
  });
}
