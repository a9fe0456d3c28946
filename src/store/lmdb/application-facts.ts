import { createHash } from "node:crypto";
import { heldPermissions } from "../../contract/grants.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import { foldName, idleSince, isManager, type ManagerEnd } from "../port/applications.js";
import type { ApplicationChange, ApplicationRecord } from "../port/records.js";
import { after, idAtEnd, momentBytes, nothing } from "./keys.js";
import type { Tables } from "./tables.js";

/**
 * What applications can be found by. A row is only a key: tenant, the letter
 * of the fact, its value, and the id of the application. Values of one fact
 * are equally long, or end with a byte that is in none of them.
 */
export type Fact = "disabled" | "manager" | "name" | "permission" | "type" | "use";

const letters: Readonly<Record<Fact, string>> = {
  disabled: "d",
  manager: "m",
  name: "n",
  permission: "p",
  type: "t",
  use: "u",
};

const facts = Object.keys(letters) as Fact[];

type Value = string | number;

const valuesOf: Readonly<Record<Fact, (record: ApplicationRecord) => readonly Value[]>> = {
  disabled: ({ disabled }) => (disabled ? [""] : []),
  manager: (record) => (isManager(record) ? [endOf(record)] : []),
  name: ({ name }) => [foldName(name)],
  permission: heldPermissions,
  type: ({ type }) => [type],
  use: (record) => [idleSince(record)],
};

/** When an application expires, be that never. */
function endOf({ expiresAt = Number.POSITIVE_INFINITY }: ApplicationRecord): number {
  return expiresAt;
}

const permissionSize = 8;
const prefixSize = 17;
const idSize = 16;

/** The start of all rows of a fact, or of those whose value begins so. */
export function factPrefix(tenantId: string, fact: Fact, value?: Buffer): Buffer {
  const prefix = Buffer.allocUnsafe(prefixSize + (value?.length ?? 0));
  writeId(tenantId, prefix, 0);
  prefix.write(letters[fact], prefixSize - 1, "latin1");
  value?.copy(prefix, prefixSize);
  return prefix;
}

/** A value as the bytes of a key. */
export function factValue(fact: Fact, value: Value): Buffer {
  if (typeof value === "number") {
    return momentBytes(value);
  }
  return fact === "permission" ? permissionBytes(value) : Buffer.from(`${value}\0`);
}

/** How many permissions are remembered with their bytes: most applications hold the same few. */
const mostRemembered = 10_000;
const remembered = new Map<string, Buffer>();

/** Names differ in length; of two with the same bytes the record tells which it is. */
function permissionBytes(name: string): Buffer {
  const known = remembered.get(name);
  if (known) {
    return known;
  }
  const bytes = createHash("sha256").update(name).digest().subarray(0, permissionSize);
  if (remembered.size < mostRemembered) {
    remembered.set(name, bytes);
  }
  return bytes;
}

export function factKey(tenantId: string, fact: Fact, value: Value, id: string): Buffer {
  const bytes = factValue(fact, value);
  const key = Buffer.allocUnsafe(prefixSize + bytes.length + idSize);
  writeId(tenantId, key, 0);
  key.write(letters[fact], prefixSize - 1, "latin1");
  bytes.copy(key, prefixSize);
  writeId(id, key, prefixSize + bytes.length);
  return key;
}

/** When each tenant that is managed now ceases to be, where it does by itself. */
export function managerEnds(table: Tables["applicationAttributes"], now: number): ManagerEnd[] {
  const ends: ManagerEnd[] = [];
  const firstFrom = (start?: Buffer) =>
    [...table.getKeys({ ...(start && { start }), limit: 1 })][0];
  for (let key = firstFrom(); key; ) {
    const tenant = key.subarray(0, idSize);
    const tenantId = idFromBytes(tenant);
    const end = factPrefix(tenantId, "manager");
    const [last] = table.getKeys({ start: after(end), end, reverse: true, limit: 1 });
    const at = last?.readDoubleBE(prefixSize) ?? 0;
    if (at > now && Number.isFinite(at)) {
      ends.push({ tenantId, at });
    }
    key = firstFrom(Buffer.concat([tenant, Buffer.of(0xff)]));
  }
  return ends;
}

/** Keeps the facts of applications, inside `write`. */
export interface ApplicationFacts {
  add(record: ApplicationRecord): void;
  remove(record: ApplicationRecord): void;

  /** Brings the facts to what a record has become by a change. */
  change(before: ApplicationRecord, after: ApplicationRecord, change: ApplicationChange): void;

  noteUse(record: ApplicationRecord, at: number): void;

  /** Whether another application manages the tenant of this one, beyond a moment. */
  hasOtherManager(record: ApplicationRecord, moment: number): boolean;
}

export function createApplicationFacts({ applicationAttributes: table }: Tables): ApplicationFacts {
  /** The rows of a fact, by their keys as texts. */
  function rowsOf(fact: Fact, { tenantId, id }: ApplicationRecord, values: readonly Value[]) {
    const keys = values.map((value) => factKey(tenantId, fact, value, id));
    return new Map(keys.map((key) => [key.toString("latin1"), key]));
  }

  function moveFact(
    fact: Fact,
    record: ApplicationRecord,
    before: readonly Value[],
    after: readonly Value[],
  ): void {
    const [old, present] = [rowsOf(fact, record, before), rowsOf(fact, record, after)];
    for (const [name, key] of old) {
      if (!present.has(name)) {
        table.remove(key);
      }
    }
    for (const [name, key] of present) {
      if (!old.has(name)) {
        table.put(key, nothing);
      }
    }
  }

  return {
    add(record) {
      for (const fact of facts) {
        for (const value of valuesOf[fact](record)) {
          table.put(factKey(record.tenantId, fact, value, record.id), nothing);
        }
      }
    },

    remove(record) {
      for (const fact of facts) {
        for (const value of valuesOf[fact](record)) {
          table.remove(factKey(record.tenantId, fact, value, record.id));
        }
      }
    },

    change(before, after, { name, permissions, rules, disabled }) {
      const isGranting = permissions !== undefined || rules !== undefined;
      const touched: Partial<Record<Fact, boolean>> = {
        name: name !== undefined,
        permission: isGranting,
        disabled: disabled !== undefined,
        manager: isGranting || disabled !== undefined,
      };
      for (const fact of facts.filter((each) => touched[each])) {
        moveFact(fact, after, valuesOf[fact](before), valuesOf[fact](after));
      }
    },

    noteUse(record, at) {
      const before = idleSince(record);
      moveFact("use", record, [before], [Math.max(before, at)]);
    },

    // They are in the order of their ends: of two, one is another application.
    hasOtherManager({ tenantId, id }, moment) {
      const end = factPrefix(tenantId, "manager");
      const last = table.getKeys({ start: after(end), end, reverse: true, limit: 2 });
      return [...last].some(
        (key) => key.readDoubleBE(prefixSize) > moment && idFromBytes(idAtEnd(key)) !== id,
      );
    },
  };
}
