import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { open } from "lmdb";
import { createIndexes } from "../../../src/store/lmdb/indexes.js";
import { type ApplicationFields, copyApplication } from "../../../src/store/port/records.js";
import { indexesOf, tables } from "../../../src/store/tables.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";

const folder = useLmdbFolder();

const names = ["application:create", "application:update", "token:read", "token:write"];
const keyIds = Array.from({ length: 3 }, () => randomUUID());
const time = fc.integer({ min: 1, max: 4 });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const id = randomUUID();
const tenantId = randomUUID();

const application = fc
  .record({
    name: fc.constantFrom("Shop", "shop", "Till", ""),
    type: fc.constantFrom("private" as const, "public" as const),
    permissions: fc.subarray(names),
    disabled: fc.boolean(),
    createdBy: optional(fc.constantFrom(...keyIds)),
    externalId: optional(fc.constantFrom("a", "b")),
    expiresAt: optional(time),
    lastUsedAt: optional(time),
    keys: fc.array(
      fc.record({
        id: fc.constantFrom(...keyIds),
        hash: fc.constantFrom(Buffer.alloc(32, 1), Buffer.alloc(32, 2)),
        imported: optional(fc.constant(true)),
        createdAt: fc.constant(0),
        expiresAt: optional(time),
      }),
      { maxLength: 3 },
    ),
  })
  .map((fields) => ({ ...copyApplication({ ...fields, id, tenantId } as never), version: 1 }));

function openIndexes() {
  const options = { encoding: "binary", keyEncoding: "binary" } as const;
  const root = open<Buffer, Buffer>({ path: folder.path(), maxDbs: 2, ...options });
  const [index, counts] = [root.openDB("index", options), root.openDB("counts", options)];
  const rowsOf = (table: typeof index) =>
    Array.from(table.getRange(), ({ key, value }) => `${key.toString("hex")} ${value}`);
  return {
    indexes: createIndexes({ index, counts } as never),
    write: (work: () => void) => root.transactionSync(work),
    rows: () => [...rowsOf(index), ...rowsOf(counts)],
    close: () => root.close(),
  };
}

describe("the indexes of LMDB", () => {
  it("have the rows of the last change, whatever came before it", async () => {
    const { indexes, write, rows, close } = openIndexes();
    type Record = (ApplicationFields & { version: number }) | undefined;
    const change = (before: Record, after: Record) =>
      write(() => indexes.change("application", before, after));
    const property = fc.property(application, application, application, (one, two, three) => {
      change(undefined, three);
      const expected = rows();
      change(three, undefined);
      expect(rows()).toEqual([]);
      change(undefined, one);
      change(one, two);
      change(two, three);
      expect(rows()).toEqual(expected);
      change(three, undefined);
    });
    try {
      fc.assert(property, { numRuns: 200 });
    } finally {
      await close();
    }
  });
});

describe("the declared indexes", () => {
  it("have numbers of their own", () => {
    const numbers = Object.values(indexesOf).flatMap((indexes) =>
      indexes.map(({ number }: { number: number }) => number),
    );
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(numbers.every((number) => number > 0 && number < 256)).toBe(true);
  });

  it("include those that find the children of a parent", () => {
    for (const { indexes, parents } of Object.values(tables)) {
      for (const { index } of Object.values<{ index: string }>(parents)) {
        expect(indexes).toHaveProperty(index);
      }
    }
  });
});
