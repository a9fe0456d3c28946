import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { ListOrder } from "../../../src/store/port/applications.js";
import { ExternalIdTaken } from "../../../src/store/port/errors.js";
import {
  type ApplicationChange,
  type ApplicationRecord,
  copyApplication,
  type NewApplication,
} from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { anApplication, hour, idsOf, must, times, unusualTexts } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, exportAll, importAll } from "./transfer-fixtures.js";

const externalId = "svc-4711";

/** An external id is unique in its tenant. */
export function describeExternalIds(subject: () => Subject): void {
  const create = (fields: Partial<NewApplication>, store: OperableStore = subject().store) =>
    store.applications.create(anApplication({ externalId, ...fields }), audit.created);

  function change(
    { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">,
    fields: Omit<ApplicationChange, "modifiedBy">,
  ) {
    const changed = () => ({ ...fields, modifiedBy: id });
    return subject().store.applications.update(tenantId, id, changed, audit.updated);
  }

  async function listBy(tenantId: string, filter: object, order?: ListOrder): Promise<string[]> {
    const query = { tenantId, filter, order, size: 9, from: { page: 1 } };
    const { items, total } = await subject().store.applications.list(query);
    expect(total).toBe(items.length);
    return idsOf(items);
  }

  describe("an external id", () => {
    it("is refused for a second application of the tenant", async () => {
      const tenantId = randomUUID();
      const first = await create({ tenantId });
      const refused = create({ tenantId });
      await expect(refused).rejects.toThrow(ExternalIdTaken);
      await expect(refused).rejects.toMatchObject({ externalId });
      const other = await create({ tenantId, externalId: "svc-4712" });
      await expect(change(other, { externalId })).rejects.toThrow(ExternalIdTaken);
      expect(await subject().store.applications.find(other.id)).toMatchObject({
        externalId: "svc-4712",
        version: other.version,
      });
      expect(await listBy(tenantId, { externalId })).toEqual([first.id]);
    });

    it("can be used in another tenant, and in another case or form", async () => {
      const tenantId = randomUUID();
      await create({});
      for (const unlike of ["svc-4711", "SVC-4711", "svc-4711 ", "svc-\uff14711", "svc-471"]) {
        const { id } = await create({ tenantId, externalId: unlike });
        expect(await listBy(tenantId, { externalId: unlike })).toEqual([id]);
      }
    });

    it("is kept by a change that repeats it, and by one without it", async () => {
      const one = await create({});
      expect(await change(one, { externalId })).toMatchObject({ externalId });
      expect(await change(one, { name: "till" })).toMatchObject({ externalId });
      expect(await listBy(one.tenantId, { externalId })).toEqual([one.id]);
    });

    it("is free after a change, a removal and a deletion", async () => {
      const tenantId = randomUUID();
      const first = await create({ tenantId });
      await change(first, { externalId: "svc-1" });
      const second = await create({ tenantId });
      expect(await change(second, { externalId: null })).not.toHaveProperty(
        "externalId",
        externalId,
      );
      const third = await create({ tenantId });
      await subject().store.applications.delete(tenantId, third.id, audit.deleted);
      const fourth = await create({ tenantId });
      expect(await listBy(tenantId, { externalId })).toEqual([fourth.id]);
      expect(await listBy(tenantId, { externalId: "svc-1" })).toEqual([first.id]);
    });

    it("is free when its application has expired, before it is removed", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const expired = await create({ tenantId, expiresAt: clock.now() + hour });
      clock.advance(hour - 1);
      await expect(create({ tenantId })).rejects.toThrow(ExternalIdTaken);
      clock.advance(1);
      const { id } = await create({ tenantId });
      expect(await store.applications.findExpired(expired.id)).toBeDefined();
      expect(await listBy(tenantId, { externalId })).toEqual([id]);
      await expect(create({ tenantId })).rejects.toThrow(ExternalIdTaken);
    });

    it("is given to one of many applications that request it at the same time", async () => {
      const { store, another } = subject();
      const stores = [store, await another()];
      const tenantId = randomUUID();
      const others = await Promise.all(
        times(3, (index) => create({ tenantId, externalId: `svc-${index}` })),
      );
      const attempts = await Promise.allSettled([
        ...times(20, (index) => create({ tenantId }, stores[index % 2])),
        ...others.map((other) => change(other, { externalId })),
      ]);
      const refused = attempts.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      expect(refused).toHaveLength(22);
      for (const reason of refused) {
        expect(reason).toBeInstanceOf(ExternalIdTaken);
      }
      expect(await listBy(tenantId, { externalId })).toHaveLength(1);
    });

    it("filters a list in any order and together with other filters", async () => {
      const { clock } = subject();
      const tenantId = randomUUID();
      const { id } = await create({ tenantId, expiresAt: clock.now() + hour });
      await create({ tenantId, externalId: "svc-4712" });
      await create({ tenantId, externalId: undefined });
      for (const order of ["newest", "name", "expires_at", "last_used_at"] as const) {
        expect(await listBy(tenantId, { externalId }, order)).toEqual([id]);
      }
      const matching = { type: "public", namePrefix: "SH", disabled: false };
      expect(await listBy(tenantId, { externalId, ...matching })).toEqual([id]);
      expect(await listBy(tenantId, { externalId, type: "private" })).toEqual([]);
      expect(await listBy(randomUUID(), { externalId })).toEqual([]);
      const { applications } = subject().store;
      const query = { tenantId, filter: { externalId }, size: 1 };
      const second = await applications.list({ ...query, from: { page: 2 } });
      expect(second).toMatchObject({ items: [], more: false, total: 1 });
      const after = await applications.list({ ...query, from: { after: id } });
      expect(after).toMatchObject({ items: [], more: false });
      const ids = await applications.list({ ...query, ids: [id], from: { page: 1 } });
      expect(idsOf(ids.items)).toEqual([id]);
    });

    it.each(unusualTexts.filter((text) => text !== ""))("can be %j", async (unusual) => {
      const tenantId = randomUUID();
      const metadata = Object.fromEntries([[unusual, unusual]]);
      const fields = { externalId: unusual, description: unusual, metadata };
      const { id } = await create({ tenantId, ...fields });
      expect(await listBy(tenantId, { externalId: unusual })).toEqual([id]);
      await expect(create({ tenantId, externalId: unusual })).rejects.toThrow(ExternalIdTaken);
      const found = must(await subject().store.applications.find(id));
      expect(Object.entries(found.metadata)).toEqual([[unusual, unusual]]);
      expect(found).toMatchObject({ externalId: unusual, description: unusual });
      const changed = await change({ tenantId, id }, { metadata: {}, description: null });
      expect(must(changed).metadata).toEqual({});
      expect(must(changed).description).toBeUndefined();
    });
  });

  describe("an imported external id", () => {
    const importOne = async (fields: object, options = {}) => {
      const application = anImportedApplication({ externalId, ...fields });
      const { applications } = await importAll(
        subject().store,
        { applications: [application] },
        options,
      );
      return { application, outcome: applications[0] };
    };

    it("is refused if another application of the tenant has it", async () => {
      const { store, clock } = subject();
      const owner = await create({ expiresAt: clock.now() + hour });
      const { tenantId } = owner;
      const { application, outcome } = await importOne({ tenantId });
      expect(outcome).toBe("external_id_taken");
      expect(await store.applications.find(application.id)).toBeUndefined();
      expect(await importOne({})).toMatchObject({ outcome: "added" });
      clock.advance(hour);
      expect(await importOne({ tenantId })).toMatchObject({ outcome: "added" });
      expect(await importOne({ tenantId })).toMatchObject({ outcome: "external_id_taken" });
    });

    it("is refused for the second of two applications of one import", async () => {
      const tenantId = randomUUID();
      const applications = times(2, () => anImportedApplication({ tenantId, externalId }));
      for (const expected of [
        ["added", "external_id_taken"],
        ["same", "external_id_taken"],
      ]) {
        const outcomes = await importAll(subject().store, { applications }, { replace: true });
        expect(outcomes.applications).toEqual(expected);
      }
    });

    it("can be taken by a later application of the import that replaces its owner", async () => {
      for (const given of ["svc-2", undefined]) {
        const tenantId = randomUUID();
        const { application: owner } = await importOne({ tenantId });
        const heir = anImportedApplication({ tenantId, externalId });
        const replacement = { ...owner, externalId: given };
        const options = { replace: true };
        const early = { applications: [heir, replacement] };
        expect(await importAll(subject().store, early, { ...options, dryRun: true })).toMatchObject(
          { applications: ["external_id_taken", "replaced"] },
        );
        const late = { applications: [replacement, heir] };
        expect(await importAll(subject().store, late, options)).toMatchObject({
          applications: ["replaced", "added"],
        });
        expect(await listBy(tenantId, { externalId })).toEqual([heir.id]);
        await expect(create({ tenantId })).rejects.toThrow(ExternalIdTaken);
      }
    });

    it("cannot be swapped with another application of the import", async () => {
      const tenantId = randomUUID();
      const { application: one } = await importOne({ tenantId });
      const { application: other } = await importOne({ tenantId, externalId: "svc-2" });
      const applications = [
        { ...one, externalId: "svc-2" },
        { ...other, externalId },
      ];
      const outcomes = await importAll(subject().store, { applications }, { replace: true });
      expect(outcomes.applications).toEqual(["external_id_taken", "external_id_taken"]);
      expect(await listBy(tenantId, { externalId })).toEqual([one.id]);
    });

    it("belongs to its application from then on", async () => {
      const { application } = await importOne({});
      const { tenantId, id } = application;
      await expect(create({ tenantId })).rejects.toThrow(ExternalIdTaken);
      const renamed = { ...application, externalId: "svc-1" };
      const { applications } = await importAll(
        subject().store,
        { applications: [renamed] },
        { replace: true },
      );
      expect(applications).toEqual(["replaced"]);
      expect(await listBy(tenantId, { externalId: "svc-1" })).toEqual([id]);
      expect(await create({ tenantId })).toMatchObject({ externalId });
    });

    it("is given to one of an import and concurrent creations", async () => {
      const tenantId = randomUUID();
      const imports = times(5, () => importOne({ tenantId }));
      const creations = times(5, () => create({ tenantId }));
      const settled = await Promise.allSettled([...imports, ...creations]);
      const failures = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      for (const reason of failures) {
        expect(reason).toBeInstanceOf(ExternalIdTaken);
      }
      expect(await listBy(tenantId, { externalId })).toHaveLength(1);
    });
  });
}

/** Exports all applications, so the store should have few. */
export function describeExternalIdTransfer(subject: () => Subject): void {
  it("exports and imports the description, external id and metadata unchanged", async () => {
    const { store } = subject();
    const metadata = { team: "payments", "a.b": "$c", ["__proto__"]: "d", "": "" };
    const fields = { description: "Sells.\nBuys.", externalId, metadata };
    const { id } = await store.applications.create(anApplication(fields), audit.created);
    const { applications } = await exportAll(store);
    const exported = must(applications.find((one) => one.id === id));
    expect(exported).toMatchObject({ description: fields.description, externalId });
    expect(Object.entries(exported.metadata)).toEqual(Object.entries(metadata));
    const again = await importAll(store, { applications }, { replace: true });
    expect(again.applications).toEqual(applications.map(() => "same"));
    const changed = { ...copyApplication(exported), metadata: { team: "till" } };
    const replaced = await importAll(store, { applications: [changed] }, { replace: true });
    expect(replaced.applications).toEqual(["replaced"]);
    expect((await store.applications.find(id))?.metadata).toEqual({ team: "till" });
  });
}
