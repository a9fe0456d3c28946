import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BSON, UUID } from "mongodb";
import { createDecoder } from "../src/store/mongo/decoder.js";
import { anApplication, rule, times } from "./store-contract/fixtures.js";
import { useMongo } from "./support/mongo.js";

const { createDatabase, open } = useMongo();

describe("a look-up in MongoDB", () => {
  it("sees what changed behind the store's back, however often it was read before", async () => {
    const db = createDatabase();
    const { find, create } = (await open(db)).applications;
    const { id } = await create(anApplication({ name: "shop" }));
    const documents = db.collection<{ _id: UUID }>("applications");
    const rename = (name: string) => documents.updateOne({ _id: new UUID(id) }, { $set: { name } });
    // No version changes with these, and no length.
    for (const name of ["till", "desk", "shop", "till"]) {
      await rename(name);
      const found = [];
      for (let reads = 0; reads < 10; reads++) {
        found.push((await find(id))?.name);
      }
      expect(found).toEqual(times(10, () => name));
    }
    await documents.deleteOne({ _id: new UUID(id) });
    expect(await find(id)).toBeUndefined();
  });

  it("finds all that share a read, also where they are more than one answer can hold", async () => {
    const { applications } = await open(createDatabase());
    const megabyte = 1024 * 1024;
    const rules = [{ ...rule, description: "x".repeat(megabyte) }];
    const created = [];
    for (let n = 0; n < 20; n++) {
      created.push(await applications.create(anApplication({ rules })));
    }
    for (let round = 0; round < 2; round++) {
      const found = await Promise.all(created.map(({ id }) => applications.find(id)));
      expect(found).toEqual(created);
    }
  });
});

describe("a decoder of documents", () => {
  const encode = (id: UUID, fields: object) => BSON.serialize({ _id: id, ...fields });

  it("answers what the bytes say, whatever it was given before", () => {
    const ids = times(3, () => new UUID());
    const documents = fc.record({
      _id: fc.constantFrom(...ids),
      name: fc.string({ maxLength: 3, unit: fc.constantFrom("a", "b") }),
      tags: fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
    });
    fc.assert(
      fc.property(fc.array(documents, { maxLength: 60 }), (all) => {
        const decode = createDecoder((document) => document);
        for (const { _id, ...fields } of all) {
          expect(decode(encode(_id, fields))).toEqual({ _id, ...fields });
        }
      }),
    );
  });

  it("decodes nothing twice that is read often and stays the same", () => {
    let made = 0;
    const decode = createDecoder((document) => ({ ...document, made: ++made }));
    const [id, other] = [new UUID(), new UUID()];
    for (let reads = 0; reads < 50; reads++) {
      decode(encode(id, { name: "shop" }));
    }
    expect(made).toBeLessThan(10);
    const kept = decode(encode(id, { name: "shop" }));
    expect(decode(encode(id, { name: "shop" }))).toBe(kept);
    expect(decode(encode(other, { name: "shop" }))).not.toBe(kept);
    expect(decode(encode(id, { name: "till" }))).toMatchObject({ name: "till" });
  });

  it("keeps no hold of the bytes that it was given", () => {
    const decode = createDecoder((document) => document);
    const bytes = encode(new UUID(), { name: "shop" });
    for (let reads = 0; reads < 8; reads++) {
      decode(bytes);
    }
    const before = decode(bytes);
    const changed = bytes.indexOf("shop".charCodeAt(0), 30 + 5);
    bytes[changed] = "c".charCodeAt(0);
    expect(before).toMatchObject({ name: "shop" });
    expect(decode(bytes)).not.toEqual(before);
  });

  it("takes a document that starts with another field", () => {
    const decode = createDecoder((document) => document);
    const all = times(20, (n) => ({ name: "shop", n: n % 2 }));
    expect(all.map((fields) => decode(BSON.serialize(fields)))).toEqual(all);
  });
});
