import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { heldPermissions } from "../../contract/grants.js";
import { idFromBytes, idToBytes, writeId } from "../../lib/uuid.js";
import { foldName, isManager, lastUseOf, type ManagerExpiration } from "../port/applications.js";
import type { ApplicationRecord } from "../port/records.js";
import { after, emptyValue, timeBytes, trailingId } from "./row-keys.js";
import type { Tables } from "./tables.js";

/**
 * The attributes that applications are indexed by. A row is only a key: tenant,
 * the letter of the attribute, its value, and the id of the application. The
 * values of one attribute have the same length, or end with a byte that occurs
 * in none of them.
 */
type Attribute =
  | ("createdBy" | "disabled" | "externalId" | "keyId" | "manager")
  | ("name" | "permission" | "type" | "use");

const letters: Readonly<Record<Attribute, string>> = {
  createdBy: "c",
  disabled: "d",
  externalId: "e",
  keyId: "k",
  manager: "m",
  name: "n",
  permission: "p",
  type: "t",
  use: "u",
};

const attributes = Object.keys(letters) as Attribute[];

type Value = string | number;

const valuesOf: Readonly<Record<Attribute, (record: ApplicationRecord) => readonly Value[]>> = {
  createdBy: ({ createdBy }) => (createdBy === undefined ? [] : [createdBy]),
  disabled: ({ disabled }) => (disabled ? [""] : []),
  externalId: ({ externalId }) => (externalId === undefined ? [] : [externalId]),
  keyId: ({ keys }) => keys.map(({ id }) => id),
  manager: (record) => (isManager(record) ? [expiryOf(record)] : []),
  name: ({ name }) => [foldName(name)],
  permission: heldPermissions,
  type: ({ type }) => [type],
  use: (record) => [lastUseOf(record)],
};

function expiryOf({ expiresAt = Number.POSITIVE_INFINITY }: ApplicationRecord): number {
  return expiresAt;
}

const hashSize = 8;
const prefixSize = 17;
const idSize = 16;

/** The common prefix of all rows of an attribute, or of those whose value starts with `value`. */
export function attributePrefix(tenantId: string, attribute: Attribute, value?: Buffer): Buffer {
  const prefix = Buffer.allocUnsafe(prefixSize + (value?.length ?? 0));
  writeId(tenantId, prefix, 0);
  prefix.write(letters[attribute], prefixSize - 1, "latin1");
  value?.copy(prefix, prefixSize);
  return prefix;
}

export function attributeValue(attribute: Attribute, value: Value): Buffer {
  if (typeof value === "number") {
    return timeBytes(value);
  }
  switch (attribute) {
    case "permission":
      return permissionBytes(value);
    case "externalId":
      return hashBytes(value);
    case "createdBy":
    case "keyId":
      return idToBytes(value);
    default:
      return Buffer.from(`${value}\0`);
  }
}

/** Most applications hold the same few permissions. */
const maxCachedHashes = 10_000;
const cachedHashes = new Map<string, Buffer>();

function permissionBytes(name: string): Buffer {
  const cached = cachedHashes.get(name);
  if (cached) {
    return cached;
  }
  const bytes = hashBytes(name);
  if (cachedHashes.size < maxCachedHashes) {
    cachedHashes.set(name, bytes);
  }
  return bytes;
}

/** A truncated hash, because texts differ in length. Readers compare the record on a collision. */
function hashBytes(text: string): Buffer {
  return createHash("sha256").update(text).digest().subarray(0, hashSize);
}

export function attributeKey(
  tenantId: string,
  attribute: Attribute,
  value: Value,
  id: string,
): Buffer {
  const bytes = attributeValue(attribute, value);
  const key = Buffer.allocUnsafe(prefixSize + bytes.length + idSize);
  writeId(tenantId, key, 0);
  key.write(letters[attribute], prefixSize - 1, "latin1");
  bytes.copy(key, prefixSize);
  writeId(id, key, prefixSize + bytes.length);
  return key;
}

/** Returns when the last manager of each tenant expires, for the tenants whose managers all expire. */
export function managerExpirations(
  table: Tables["applicationAttributes"],
  now: number,
): ManagerExpiration[] {
  const expirations: ManagerExpiration[] = [];
  const firstFrom = (start?: Buffer) =>
    [...table.getKeys({ ...(start && { start }), limit: 1 })][0];
  for (let key = firstFrom(); key; ) {
    const tenant = key.subarray(0, idSize);
    const tenantId = idFromBytes(tenant);
    const end = attributePrefix(tenantId, "manager");
    const [last] = table.getKeys({ start: after(end), end, reverse: true, limit: 1 });
    const at = last?.readDoubleBE(prefixSize) ?? 0;
    if (at > now && Number.isFinite(at)) {
      expirations.push({ tenantId, at });
    }
    key = firstFrom(Buffer.concat([tenant, Buffer.of(0xff)]));
  }
  return expirations;
}

/** Maintains the attribute index, inside `write`. */
interface ApplicationAttributes {
  add(record: ApplicationRecord): void;
  remove(record: ApplicationRecord): void;

  /** Replaces the rows of the attributes that differ. */
  change(before: ApplicationRecord, after: ApplicationRecord): void;

  recordUse(record: ApplicationRecord, at: number): void;

  /** Whether another application still manages the tenant of this one after a time. */
  hasOtherManager(record: ApplicationRecord, time: number): boolean;

  /** The ids of the applications with an attribute. External ids that have the same hash are not distinguished. */
  idsBy(attribute: "externalId" | "keyId", tenantId: string, value: string): string[];
}

export function createApplicationAttributes({
  applicationAttributes: table,
}: Tables): ApplicationAttributes {
  /** The keys of a record's values, by their Latin-1 text. */
  function keysOf(
    attribute: Attribute,
    { tenantId, id }: ApplicationRecord,
    values: readonly Value[],
  ) {
    const keys = values.map((value) => attributeKey(tenantId, attribute, value, id));
    return new Map(keys.map((key) => [key.toString("latin1"), key]));
  }

  function replaceValues(
    attribute: Attribute,
    record: ApplicationRecord,
    before: readonly Value[],
    after: readonly Value[],
  ): void {
    const oldKeys = keysOf(attribute, record, before);
    const newKeys = keysOf(attribute, record, after);
    for (const [name, key] of oldKeys) {
      if (!newKeys.has(name)) {
        table.remove(key);
      }
    }
    for (const [name, key] of newKeys) {
      if (!oldKeys.has(name)) {
        table.put(key, emptyValue);
      }
    }
  }

  return {
    add(record) {
      for (const attribute of attributes) {
        for (const value of valuesOf[attribute](record)) {
          table.put(attributeKey(record.tenantId, attribute, value, record.id), emptyValue);
        }
      }
    },

    remove(record) {
      for (const attribute of attributes) {
        for (const value of valuesOf[attribute](record)) {
          table.remove(attributeKey(record.tenantId, attribute, value, record.id));
        }
      }
    },

    change(before, after) {
      for (const attribute of attributes) {
        const [oldValues, newValues] = [valuesOf[attribute](before), valuesOf[attribute](after)];
        if (!isDeepStrictEqual(oldValues, newValues)) {
          replaceValues(attribute, after, oldValues, newValues);
        }
      }
    },

    recordUse(record, at) {
      const before = lastUseOf(record);
      replaceValues("use", record, [before], [Math.max(before, at)]);
    },

    // Sorted by expiry: of the last two, at least one is another application.
    hasOtherManager({ tenantId, id }, time) {
      const end = attributePrefix(tenantId, "manager");
      const last = table.getKeys({ start: after(end), end, reverse: true, limit: 2 });
      return [...last].some(
        (key) => key.readDoubleBE(prefixSize) > time && idFromBytes(trailingId(key)) !== id,
      );
    },

    idsBy(attribute, tenantId, value) {
      const start = attributePrefix(tenantId, attribute, attributeValue(attribute, value));
      return Array.from(table.getKeys({ start, end: after(start) }), (key) =>
        idFromBytes(trailingId(key)),
      );
    },
  };
}
