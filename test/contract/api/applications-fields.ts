import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, createKeyFixtures, tokenRead } from "./fixtures.js";

const hour = 3_600_000;
const externalId = "svc-4711";

const mask = (...paths: string[]) => create(FieldMaskSchema, { paths });
const pairs = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${index}`, "value"]));

/** The longest texts: 𝒙 has two UTF-16 units and four bytes. */
const longest = {
  description: "𝒙".repeat(500),
  externalId: "𝒙".repeat(200),
  metadata: { ["𝒙".repeat(40)]: "𝒙".repeat(500) },
};

/** The description, external id, metadata and expiry of applications. */
export function describeApplicationFields(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant } = createKeyFixtures(subject);
  const inFuture = (after: number) => timestampFromMs(server().clock.now() + after);

  async function createWith(fields: object) {
    const { root } = await createTenant();
    const request = { name: "shop", type: "private", ...tokenRead, ...fields };
    const created = await api().createApplication(root.key, request);
    const { key: _key, ...application } = created;
    const update = (changes: object) =>
      api().updateApplication(root.key, { id: created.id, name: "shop", ...tokenRead, ...changes });
    const read = () => api().getApplication(root.key, created);
    const createAnother = (others: object) =>
      api().createApplication(root.key, { ...request, ...others });
    return { root, application, update, read, createAnother };
  }

  describe("an application that breaks several rules of its type", () => {
    const invalid = {
      permissions: ["application:create"],
      rules: [],
      allowedOrigins: ["https://Shop.example"],
      allowedCidrs: ["10.0.0.1/8"],
    };
    const violations = [
      ["expires_at", "timestamp.gt_now"],
      ["permissions[0]", "application.type"],
      ["allowed_origins[0]", "string.web_origin"],
      ["allowed_cidrs[0]", "string.network"],
    ];

    async function expectViolations(call: Promise<unknown>, expected: readonly string[][]) {
      const { facts } = await expectRefused(call, "invalid_request");
      const found = facts.violations.map(({ field, code }) => [field, code]);
      expect(found.sort()).toEqual([...expected].sort());
    }

    it("is refused with all of them when it is created or updated", async () => {
      const { root, createAnother } = await createWith({ type: "public" });
      const request = { type: "public", ...invalid, expiresAt: inFuture(-1) };
      await expectViolations(createAnother(request), violations);
      await expectViolations(createAnother({ ...request, type: "private", sessionQuota: 5 }), [
        ["expires_at", "timestamp.gt_now"],
        ["allowed_origins", "application.type"],
        ["allowed_origins[0]", "string.web_origin"],
        ["allowed_cidrs[0]", "string.network"],
        ["session_quota", "application.type"],
      ]);
      const { id } = await createAnother({ type: "public" });
      const update = { id, name: "shop", ...invalid, expiresAt: inFuture(-1), tenantId: id };
      await expectViolations(api().updateApplication(root.key, update), [
        ...violations,
        ["tenant_id", "output_only"],
      ]);
    });
  });

  describe("the description, external id and metadata of an application", () => {
    it("are returned as they were sent", async () => {
      const metadata = { team: "payments", "a.b$c": "", 'key with "quotes"': "two\nlines\t" };
      const fields = { description: "Sells.\nBuys.", externalId, metadata };
      const { application, read, root } = await createWith(fields);
      expect(application).toMatchObject(fields);
      expect(await read()).toEqual(application);
      const { data } = await api().listApplications(root.key, { externalId });
      expect(data).toEqual([application]);
    });

    it("are absent and empty by default, and if empty texts are sent", async () => {
      for (const fields of [{}, { description: "", externalId: "", metadata: {} }]) {
        const { application, createAnother } = await createWith(fields);
        expect(application.description).toBeUndefined();
        expect(application.externalId).toBeUndefined();
        expect(application.metadata).toEqual({});
        await createAnother(fields);
      }
    });

    it("keep keys that are properties of every object", async () => {
      const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
      const metadata = Object.fromEntries(names.map((name) => [name, `value of ${name}`]));
      const { read, update } = await createWith({ metadata });
      const stored = async () => Object.entries((await read()).metadata).sort();
      expect(await stored()).toEqual(Object.entries(metadata).sort());
      const { metadata: updated } = await update({ metadata });
      expect(Object.entries(updated).sort()).toEqual(Object.entries(metadata).sort());
    });

    it("accept the longest texts and the most pairs", async () => {
      const { read, update } = await createWith(longest);
      expect(await read()).toMatchObject(longest);
      expect((await update({ metadata: pairs(50) })).metadata).toEqual(pairs(50));
    });

    it.each<[name: string, field: string, change: object]>([
      ["a description of 501 characters", "description", { description: "𝒙".repeat(501) }],
      ["a description with a control character", "description", { description: "a\0" }],
      ["an external id of 201 characters", "external_id", { externalId: "𝒙".repeat(201) }],
      ["an external id of two lines", "external_id", { externalId: "a\nb" }],
      ["a blank external id", "external_id", { externalId: " " }],
      ["51 pairs", "metadata", { metadata: pairs(51) }],
      [
        "a key of 41 characters",
        `metadata["${"k".repeat(41)}"]`,
        { metadata: { ["k".repeat(41)]: "" } },
      ],
      ["an empty key", 'metadata[""]', { metadata: { "": "a" } }],
      ["a key of two lines", 'metadata["a\\nb"]', { metadata: { "a\nb": "a" } }],
      ["a value of 501 characters", 'metadata["a"]', { metadata: { a: "𝒙".repeat(501) } }],
    ])("refuse %s", async (_case, field, change) => {
      const { read, update, application, createAnother } = await createWith({});
      for (const call of [update(change), createAnother(change)]) {
        const { errors } = await expectRefused(call, "invalid_request");
        expect(Object.keys(errors)).toEqual([field]);
      }
      expect(await read()).toEqual(application);
    });

    it("do not change by an update without them", async () => {
      const fields = { description: "a", externalId, metadata: { a: "b" } };
      const { application, update, read } = await createWith(fields);
      expect(await update({ name: "renamed" })).toMatchObject({ ...fields, name: "renamed" });
      expect(await read()).toMatchObject({
        ...fields,
        version: expect.not.stringMatching(application.version),
      });
    });

    it("are replaced by an update with them, the metadata as a whole", async () => {
      const { update } = await createWith({ description: "a", metadata: { a: "b", c: "d" } });
      const fields = { description: "b", externalId: "svc-1", metadata: { c: "e" } };
      const updated = await update(fields);
      expect(updated).toMatchObject(fields);
      expect(updated.metadata).toEqual(fields.metadata);
    });

    it.each<[name: string, change: object, left: object]>([
      ["empty texts", { description: "", externalId: "" }, { a: "b" }],
      ["a mask", { updateMask: mask("description", "external_id", "metadata") }, {}],
    ])("are removed by an update with %s", async (_case, change, left) => {
      const fields = { description: "a", externalId, metadata: { a: "b" } };
      const { update, read, createAnother } = await createWith(fields);
      await update(change);
      const { description, externalId: removed, metadata } = await read();
      expect({ description, removed, metadata }).toEqual({ metadata: left });
      await createAnother(fields);
    });

    it("are recorded in the audit log before and after a change", async () => {
      const before = { description: "a", externalId, metadata: { a: "b" } };
      const { root, application, update } = await createWith({
        ...before,
        expiresAt: inFuture(hour),
      });
      const after = { description: "b", externalId: "svc-1", metadata: { c: "d" } };
      const updateMask = mask("expires_at", "description", "external_id", "metadata");
      await update({ ...after, updateMask });
      const { data } = await api().listEvents(root.key, {
        target: application.id,
        kind: ["application.updated"],
      });
      expect(data).toHaveLength(1);
      expect(data[0]?.before).toMatchObject({ ...before, expiresAt: application.expiresAt });
      expect(data[0]?.after).toMatchObject(after);
      expect(data[0]?.after?.expiresAt).toBeUndefined();
    });
  });

  describe("an external id that another application has", () => {
    it("is refused with 409, and only in the same tenant", async () => {
      const { createAnother, root } = await createWith({ externalId });
      const other = await createAnother({ externalId: "svc-1" });
      const change = { id: other.id, name: "shop", ...tokenRead, externalId };
      for (const call of [createAnother({}), api().updateApplication(root.key, change)]) {
        const { message } = await expectRefused(call, "external_id_taken");
        expect(message).toContain(`"${externalId}"`);
        expect(message).toContain("unique in the tenant");
      }
      expect(await api().getApplication(root.key, other)).toMatchObject({ externalId: "svc-1" });
      await createWith({ externalId });
    });

    it("is given to one of 20 concurrent requests", async () => {
      const { createAnother, root } = await createWith({});
      const calls = Array.from({ length: 20 }, () => createAnother({ externalId }));
      const settled = await Promise.allSettled(calls);
      expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const [index, { status }] of settled.entries()) {
        if (status === "rejected") {
          await expectRefused(calls[index] as Promise<unknown>, "external_id_taken");
        }
      }
      const { data } = await api().listApplications(root.key, { externalId });
      expect(data).toHaveLength(1);
    });

    it("is free after that application is deleted or has expired", async () => {
      const { root, application, createAnother } = await createWith({ externalId });
      await api().deleteApplication(root.key, application);
      await createAnother({ externalId, expiresAt: inFuture(hour) });
      await expectRefused(createAnother({ externalId }), "external_id_taken");
      server().clock.advance(hour);
      await createAnother({ externalId });
    });
  });

  describe("the expiry of an application", () => {
    const keyWorks = (key: string | undefined) => api().whoAmI(key);

    async function createExpiring() {
      const { root, createAnother } = await createWith({});
      const { id, key } = await createAnother({ expiresAt: inFuture(hour) });
      const update = (changes: object) =>
        api().updateApplication(root.key, { id, name: "shop", ...tokenRead, ...changes });
      return { key, update };
    }

    it("is kept by an update without it", async () => {
      const { key, update } = await createExpiring();
      const expiresAt = inFuture(hour);
      expect((await update({})).expiresAt).toEqual(expiresAt);
      server().clock.advance(hour);
      await expectRefused(keyWorks(key), "unauthenticated");
    });

    it("can be postponed", async () => {
      const { key, update } = await createExpiring();
      const expiresAt = inFuture(2 * hour);
      expect((await update({ expiresAt })).expiresAt).toEqual(expiresAt);
      server().clock.advance(2 * hour - 1);
      expect(await keyWorks(key)).toMatchObject({ expiresAt });
      server().clock.advance(1);
      await expectRefused(keyWorks(key), "unauthenticated");
    });

    it("can be advanced", async () => {
      const { key, update } = await createExpiring();
      await update({ expiresAt: inFuture(1) });
      await keyWorks(key);
      server().clock.advance(1);
      await expectRefused(keyWorks(key), "unauthenticated");
    });

    it("can be removed", async () => {
      const { key, update } = await createExpiring();
      expect((await update({ updateMask: mask("expires_at") })).expiresAt).toBeUndefined();
      server().clock.advance(100 * hour);
      expect((await keyWorks(key)).expiresAt).toBeUndefined();
    });

    it("must be in the future", async () => {
      const { key, update } = await createExpiring();
      for (const after of [0, -hour]) {
        const call = update({ expiresAt: inFuture(after) });
        const { errors } = await expectRefused(call, "invalid_request");
        expect(errors).toEqual({ expires_at: ["must be in the future"] });
      }
      await keyWorks(key);
    });
  });
}
