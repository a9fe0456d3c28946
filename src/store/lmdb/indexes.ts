import { createHash } from "node:crypto";
import type { Database } from "lmdb";
import { idFromBytes, idToBytes, nilUuid, writeId } from "../../lib/uuid.js";
import type { Position, Range } from "../core/record-reader.js";
import type { ManagerExpiration } from "../port/applications.js";
import type { RecordKind, Records } from "../port/change.js";
import { type Index, type IndexName, indexesOf, indexOf, type Value } from "../tables.js";
import { after, emptyValue, timeBytes, trailingId } from "./row-keys.js";
import type { Tables } from "./tables.js";

/**
 * Maintains the indexes of all kinds of records, inside `read` or `write`. A row is only a key:
 *
 *     tenant, number of the index, value, id of the record
 *
 * The tenant is nil in an index that spans all tenants. The values of an index have one length, or
 * end with a byte that occurs in none of them.
 */
export interface Indexes {
  /** Replaces the rows of a record by those after a change. One of both may be missing. */
  change<K extends RecordKind>(
    kind: K,
    before: Records[K] | undefined,
    after: Records[K] | undefined,
  ): void;

  /** Replaces the rows of a record in one index. */
  replace<K extends RecordKind>(
    kind: K,
    name: IndexName<K>,
    record: Records[K],
    before: readonly Value[],
    after: readonly Value[],
  ): void;

  /** The keys of the rows in a range. */
  keys<K extends RecordKind>(range: Range<K>, options?: KeyOptions): Iterable<Buffer>;

  /** The ids of the records in a range. */
  ids<K extends RecordKind>(range: Range<K>, options?: KeyOptions): string[];

  count<K extends RecordKind>(range: Range<K>): number;
}

interface KeyOptions {
  readonly isBackward?: boolean | undefined;
  readonly after?: Position | undefined;
  readonly skip?: number | undefined;
  readonly limit?: number;
}

const idSize = 16;
const numberAt = idSize;
const prefixSize = idSize + 1;
const hashSize = 8;

/** The time in a row of an index of times. */
export function timeIn(key: Buffer): number {
  return key.readDoubleBE(prefixSize);
}

export function numberIn(key: Buffer): number {
  return key[numberAt] as number;
}

/** The common prefix of all rows of an index, or of those with a value. */
export function indexPrefix<K extends RecordKind>({ kind, index, tenantId, value }: Range<K>) {
  const declared = indexOf(kind, index);
  return keyOf(declared, tenantId, value === undefined ? nothing : toBytes(declared, value));
}

const nothing = Buffer.alloc(0);

/** The key of a row, or its start. */
function keyOf(
  { number }: Pick<Index<never>, "number">,
  tenantId: string | undefined,
  value: Uint8Array,
  id?: string,
): Buffer {
  const size = prefixSize + value.length;
  const key = Buffer.allocUnsafe(id === undefined ? size : size + idSize);
  writeId(tenantId ?? nilUuid, key, 0);
  key[numberAt] = number;
  key.set(value, prefixSize);
  if (id !== undefined) {
    writeId(id, key, size);
  }
  return key;
}

function toBytes({ type }: Pick<Index<never>, "type">, value: Value): Uint8Array {
  if (typeof value === "number") {
    return timeBytes(value);
  }
  if (typeof value === "object") {
    return value;
  }
  switch (type) {
    case "none":
      return nothing;
    case "id":
      return idToBytes(value);
    case "exact":
      return hashOf(value);
    default:
      return Buffer.from(`${value}\0`);
  }
}

/** Most applications hold the same few permissions. */
const maxCachedHashes = 10_000;
const cachedHashes = new Map<string, Buffer>();

/** A truncated hash, because texts differ in length. Readers compare the record on a collision. */
function hashOf(text: string): Buffer {
  const cached = cachedHashes.get(text);
  if (cached) {
    return cached;
  }
  const hash = createHash("sha256").update(text).digest().subarray(0, hashSize);
  if (cachedHashes.size < maxCachedHashes) {
    cachedHashes.set(text, hash);
  }
  return hash;
}

export function createIndexes({ index: table, counts }: Pick<Tables, "index" | "counts">): Indexes {
  function put<R>(index: Index<R>, tenantId: string | undefined, value: Value, id: string): void {
    table.put(keyOf(index, tenantId, toBytes(index, value), id), emptyValue);
    if (index.isCounted) {
      changeCount(counts, keyOf(index, tenantId, nothing), 1);
    }
  }

  function remove<R>(
    index: Index<R>,
    tenantId: string | undefined,
    value: Value,
    id: string,
  ): void {
    table.remove(keyOf(index, tenantId, toBytes(index, value), id));
    if (index.isCounted) {
      changeCount(counts, keyOf(index, tenantId, nothing), -1);
    }
  }

  function replaceIn<R>(
    index: Index<R>,
    { tenantId, id }: { readonly tenantId: string; readonly id: string },
    before: readonly Value[],
    after: readonly Value[],
  ): void {
    const scope = index.isGlobal ? undefined : tenantId;
    for (const value of without(before, after)) {
      remove(index, scope, value, id);
    }
    for (const value of without(after, before)) {
      put(index, scope, value, id);
    }
  }

  function keys<K extends RecordKind>(range: Range<K>, options: KeyOptions = {}): Iterable<Buffer> {
    const { isBackward: reverse = false, after: position, skip: offset = 0, limit } = options;
    const { low, high } = boundsOf(range);
    const cursor = position && positionKey(range, position);
    const [first, end] = reverse ? [high, low] : [low, high];
    const isAhead = cursor && (reverse || Buffer.compare(cursor, first) > 0);
    const from = isAhead ? { start: cursor, exclusiveStart: true } : { start: first };
    return table.getKeys({ ...from, end, reverse, offset, ...(limit !== undefined && { limit }) });
  }

  return {
    change(kind, before, after) {
      const record = after ?? before;
      for (const index of record ? indexesOf[kind] : []) {
        const old = before ? index.values(before) : none;
        replaceIn(index, record as Records[typeof kind], old, after ? index.values(after) : none);
      }
    },

    replace(kind, name, record, before, after) {
      replaceIn(indexOf(kind, name), record, before, after);
    },

    keys,

    ids(range, options) {
      return Array.from(keys(range, options), (key) => idFromBytes(trailingId(key)));
    },

    count(range) {
      const { kind, index, tenantId, ...interval } = range;
      const declared = indexOf(kind, index);
      if (declared.isCounted && Object.keys(interval).length === 0) {
        return countIn(counts, keyOf(declared, tenantId, nothing));
      }
      const { low, high } = boundsOf(range);
      return table.getKeysCount({ start: low, end: high });
    },
  };
}

/** The values that others lack. */
function without(values: readonly Value[], others: readonly Value[]): readonly Value[] {
  if (values.length === 0 || others.length === 0) {
    return values;
  }
  if (values.length === 1 && others.length === 1) {
    return comparable(values[0] as Value) === comparable(others[0] as Value) ? none : values;
  }
  const present = new Set(others.map(comparable));
  return values.filter((value) => !present.has(comparable(value)));
}

const none: readonly Value[] = [];

function comparable(value: Value): string | number {
  return typeof value === "object" ? Buffer.from(value).toString("latin1") : value;
}

/** The first key of a range, and one after its last. */
function boundsOf<K extends RecordKind>(range: Range<K>): { low: Buffer; high: Buffer } {
  const { prefix = "", since, until } = range;
  const start = indexPrefix(range);
  const all = prefix === "" ? start : Buffer.concat([start, Buffer.from(prefix)]);
  return {
    low: since === undefined ? all : Buffer.concat([start, timeBytes(since)]),
    high: until === undefined ? after(all) : Buffer.concat([start, timeBytes(until)]),
  };
}

function positionKey<K extends RecordKind>(range: Range<K>, { value, after: id }: Position) {
  const declared = indexOf(range.kind, range.index);
  return keyOf(declared, range.tenantId, toBytes(declared, range.value ?? value ?? ""), id);
}

/** The count that a row of a table stores. */
export function countIn(table: Database<Buffer, Buffer>, key: Buffer): number {
  return table.get(key)?.readUInt32BE() ?? 0;
}

/** Changes a stored count, whose row is removed with the last one. */
export function changeCount(table: Database<Buffer, Buffer>, key: Buffer, change: number): void {
  const count = countIn(table, key) + change;
  if (count === 0) {
    table.remove(key);
    return;
  }
  const value = Buffer.allocUnsafe(4);
  value.writeUInt32BE(count);
  table.put(key, value);
}

/** Returns when the last manager of each tenant expires, for the tenants whose managers all expire. */
export function managerExpirations(table: Tables["index"], now: number): ManagerExpiration[] {
  const expirations: ManagerExpiration[] = [];
  const firstFrom = (start?: Buffer) =>
    [...table.getKeys({ ...(start && { start }), limit: 1 })][0];
  for (let key = firstFrom(); key; ) {
    const tenantId = idFromBytes(key);
    const end = indexPrefix({ kind: "application", index: "manager", tenantId });
    const [last] = table.getKeys({ start: after(end), end, reverse: true, limit: 1 });
    const at = last ? timeIn(last) : 0;
    if (at > now && Number.isFinite(at)) {
      expirations.push({ tenantId, at });
    }
    key = firstFrom(Buffer.concat([idToBytes(tenantId), Buffer.of(0xff)]));
  }
  return expirations;
}
