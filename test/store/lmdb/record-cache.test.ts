import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { createRecordCache } from "../../../src/store/lmdb/record-cache.js";
import { anApplication, must, times } from "../../contract/store/fixtures.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";

const folder = useLmdbFolder();

/** A cached record of a random row. */
function cacheOne(size = 100) {
  const cache = createRecordCache<object>();
  const id = newId(Date.now());
  const row = randomBytes(size);
  const record = {};
  cache.offer(id, row, record);
  cache.offer(id, row, record);
  return { cache, id, row, record };
}

describe("the cache of records", () => {
  it("returns a record that was read twice, as long as its row has the same bytes", () => {
    const { cache, id, row, record } = cacheOne();
    expect(cache.find(id, Buffer.from(row))).toBe(record);
    expect(cache.find(newId(Date.now()), row)).toBeUndefined();
    for (let index = 0; index < row.length; index++) {
      const other = Buffer.from(row);
      other[index] = (other[index] as number) ^ 1;
      expect(cache.find(id, other)).toBeUndefined();
    }
    expect(cache.find(id, row.subarray(1))).toBeUndefined();
    expect(cache.find(id, row.subarray(0, -1))).toBeUndefined();
    expect(cache.find(id, Buffer.concat([row, Buffer.of(0)]))).toBeUndefined();
  });

  it("compares as many bytes as the length of a buffer of the database", () => {
    const { cache, id, row, record } = cacheOne();
    const shared = Buffer.concat([row, randomBytes(100)]);
    Object.defineProperty(shared, "length", { value: row.length });
    expect(cache.find(id, shared)).toBe(record);
  });

  it("keeps no record that was read once, and no large one", () => {
    const cache = createRecordCache<object>();
    const [id, row] = [newId(Date.now()), randomBytes(100)];
    cache.offer(id, row, {});
    expect(cache.find(id, row)).toBeUndefined();
    const large = cacheOne(5_000);
    expect(large.cache.find(large.id, large.row)).toBeUndefined();
  });

  it("keeps a bounded number of records", () => {
    const cache = createRecordCache<object>();
    const row = randomBytes(100);
    const ids = times(5_000, () => newId(Date.now()));
    for (const id of ids) {
      cache.offer(id, row, {});
      cache.offer(id, row, {});
    }
    const kept = ids.filter((id) => cache.find(id, row));
    expect(kept.length).toBeGreaterThan(500);
    expect(kept.length).toBeLessThanOrEqual(1_024);
  });

  it("never returns a record that another process has changed", async () => {
    const [store, other] = [await folder.open(), await folder.open()];
    const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
    for (const writer of [other, store, other]) {
      for (const reader of [store, other]) {
        await reader.applications.find(id);
        const before = must(await reader.applications.find(id));
        expect((await reader.applications.find(id)) === before).toBe(true);
      }
      const name = randomBytes(8).toString("hex");
      const change = () => ({ name, modifiedBy: id });
      await writer.applications.update(tenantId, id, change, audit.updated);
      for (const reader of [store, other]) {
        expect(must(await reader.applications.find(id)).name).toBe(name);
      }
    }
  });
});
