import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { managerPermissions } from "../../../src/store/port/applications.js";
import type { Expiration, NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord, KeyRecord } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { anEvent, day, listEvents } from "./event-fixtures.js";
import { anApplication, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, importAll } from "./transfer-fixtures.js";

const week = 7 * day;
const leads = [week, day, 0];

function toEvents({ tenantId, applicationId, keyId, at, leavesNoManager }: Expiration): NewEvent[] {
  const kind = leavesNoManager ? "last manager" : "ending";
  return [anEvent({ tenantId, target: { applicationId, keyId }, kind, endsAt: at })];
}

/** Tells of all ends that are to be told of. */
async function tell({ events }: Store, lead: number): Promise<void> {
  while ((await events.addExpirationEvents(lead, toEvents)) > 0) {}
}

/** Each of these is looked at a millisecond before it is to be told, when it is not, and then. */
export function describeEnds(subject: () => Subject): void {
  async function told(tenantId: string) {
    const events = await listEvents(subject().store, { tenantId });
    return events.map(({ target, endsAt }) => ({ ...target, endsAt }));
  }

  async function createEnding(tenantId: string = randomUUID(), after = 30 * day) {
    const { store, clock } = subject();
    const expiresAt = clock.now() + after;
    return store.applications.create(anApplication({ tenantId, expiresAt }));
  }

  /** Imports so many applications that end after so long, which is quicker than to create them. */
  async function importEnding(tenantId: string, ends: readonly number[]) {
    const { store, clock } = subject();
    const applications = ends.map((after) =>
      anImportedApplication({ tenantId, expiresAt: clock.now() + after }),
    );
    await importAll(store, { applications });
    return applications;
  }

  function ending({ id, hash, createdAt }: KeyRecord, expiresAt: number): KeyRecord {
    return { id, hash, createdAt, expiresAt };
  }

  /** Gives an application another key, and its old one an end. */
  async function rotate({ id, tenantId }: ApplicationRecord, expiresAt: number) {
    const { store } = subject();
    const key = { id: randomUUID(), hash: randomBytes(32) };
    const updated = await store.applications.update(tenantId, id, ({ keys: [old] }, now) => ({
      keys: [{ ...key, createdAt: now }, ending(must(old), expiresAt)],
      modifiedBy: id,
    }));
    return must(must(updated).keys[1]);
  }

  async function createKeyEnding() {
    const { store, clock } = subject();
    const application = await store.applications.create(anApplication());
    const endsAt = clock.now() + 30 * day;
    const { id: keyId } = await rotate(application, endsAt);
    return { application, keyId, endsAt };
  }

  describe.each(leads.map((lead) => ({ lead, days: lead / day })))(
    "$days days ahead",
    ({ lead }) => {
      /** Asks once, so that what comes is not taken for what had come before anyone asked. */
      async function begin() {
        await tell(subject().store, lead);
        return subject();
      }

      it("reports the expiry of an application once", async () => {
        const { store, another, clock } = await begin();
        const { id: applicationId, tenantId, expiresAt: endsAt } = await createEnding();
        clock.advance(30 * day - lead - 1);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([]);
        clock.advance(1);
        for (const by of [store, await another(), store]) {
          await tell(by, lead);
          expect(await told(tenantId)).toEqual([{ applicationId, endsAt }]);
        }
        clock.advance(1);
        await tell(store, lead);
        expect(await told(tenantId)).toHaveLength(1);
      });

      it("reports the expiry of a key once", async () => {
        const { store, clock } = await begin();
        const { application, keyId, endsAt } = await createKeyEnding();
        const { id: applicationId, tenantId } = application;
        clock.advance(30 * day - lead - 1);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([]);
        clock.advance(1);
        for (let count = 0; count < 2; count++) {
          await tell(store, lead);
          expect(await told(tenantId)).toEqual([{ applicationId, keyId, endsAt }]);
        }
      });

      it("reports each expiry once if two processes report at the same time", async () => {
        const { store, another, clock } = await begin();
        const other = await another();
        const { tenantId } = anApplication();
        const created = await importEnding(
          tenantId,
          times(250, (index) => 30 * day + (index % 5)),
        );
        clock.advance(30 * day + 5 - lead);
        await Promise.all([store, other, store, other].map((by) => tell(by, lead)));
        const ids = (await told(tenantId)).map(({ applicationId }) => applicationId);
        expect(ids.sort()).toEqual(created.map(({ id }) => id).sort());
      });

      it("reports all expirations of one time", async () => {
        const { store, clock } = await begin();
        const { tenantId } = anApplication();
        await importEnding(
          tenantId,
          times(250, () => 30 * day),
        );
        clock.advance(30 * day - lead);
        await tell(store, lead);
        const ids = (await told(tenantId)).map(({ applicationId }) => applicationId);
        expect(ids).toHaveLength(250);
        expect(new Set(ids).size).toBe(250);
      });

      it("reports the expiry of a disabled application", async () => {
        const { store, clock } = await begin();
        const { id, tenantId } = await createEnding();
        await store.applications.update(tenantId, id, () => ({ disabled: true, modifiedBy: id }));
        clock.advance(30 * day - lead);
        await tell(store, lead);
        expect(await told(tenantId)).toHaveLength(1);
      });

      it("marks the expiry of a tenant's last manager", async () => {
        const { store, clock } = await begin();
        const tenantId = randomUUID();
        const manager = { tenantId, permissions: managerPermissions };
        let last: ApplicationRecord | undefined;
        for (const after of [30 * day, 31 * day]) {
          const expiresAt = clock.now() + after;
          last = await store.applications.create(anApplication({ ...manager, expiresAt }));
          await store.applications.create(anApplication({ tenantId, expiresAt }));
        }
        const disabled = await store.applications.create(anApplication(manager));
        const disable = () => ({ disabled: true, modifiedBy: disabled.id });
        await store.applications.update(tenantId, disabled.id, disable);
        clock.advance(30 * day - lead);
        await tell(store, lead);
        clock.advance(day);
        await tell(store, lead);
        const events = await listEvents(store, { tenantId });
        const ofManager = events.filter(({ kind }) => kind === "last manager");
        expect(ofManager).toMatchObject([{ target: { applicationId: last?.id } }]);
        expect(events).toHaveLength(4);
      });

      it("does not report deleted applications and keys", async () => {
        const { store, clock } = await begin();
        const { id, tenantId } = await createEnding();
        await store.applications.delete(tenantId, id);
        const { application } = await createKeyEnding();
        await store.applications.update(application.tenantId, application.id, ({ keys }) => ({
          keys: keys.slice(0, 1),
          modifiedBy: application.id,
        }));
        clock.advance(30 * day - lead);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([]);
        expect(await told(application.tenantId)).toEqual([]);
      });

      it("reports a postponed expiry at its new time", async () => {
        const { store, clock } = await begin();
        const { application, keyId, endsAt } = await createKeyEnding();
        const { id: applicationId, tenantId } = application;
        await store.applications.update(tenantId, applicationId, ({ keys }) => ({
          keys: keys.map((key) => (key.id === keyId ? ending(key, endsAt + day) : key)),
          modifiedBy: applicationId,
        }));
        clock.advance(30 * day - lead);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([]);
        clock.advance(day);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([{ applicationId, keyId, endsAt: endsAt + day }]);
      });

      it("does not report a key whose application expires first", async () => {
        const { store, clock } = await begin();
        const application = await createEnding();
        const { id, tenantId, expiresAt: endsAt = 0 } = application;
        await rotate(application, endsAt + 1);
        clock.advance(30 * day + 1 - lead);
        await tell(store, lead);
        expect(await told(tenantId)).toEqual([{ applicationId: id, endsAt }]);
      });

      it("retries an expiry whose event failed", async () => {
        const { store, clock } = await begin();
        const { tenantId } = await createEnding();
        clock.advance(30 * day - lead);
        const error = new Error("There is no room.");
        const failing = store.events.addExpirationEvents(lead, () => {
          throw error;
        });
        await expect(failing).rejects.toBe(error);
        expect(await told(tenantId)).toEqual([]);
        await tell(store, lead);
        expect(await told(tenantId)).toHaveLength(1);
      });

      it("reports an expiry that was due before the first call", async () => {
        const { store, clock } = subject();
        const { tenantId } = await createEnding();
        clock.advance(30 * day - Math.floor(lead / 2) + (lead ? 0 : 1_000));
        await tell(store, lead);
        expect(await told(tenantId)).toHaveLength(1);
      });

      it("reports once per lead time, independently of other lead times", async () => {
        const { store, clock } = await begin();
        const { tenantId } = await createEnding();
        clock.advance(30 * day - lead);
        await tell(store, lead);
        await tell(store, lead + day);
        await tell(store, lead);
        expect((await told(tenantId)).length).toBe(lead === 0 ? 1 : 2);
      });
    },
  );

  describe.each([week, day])("with a lead of %d ms", (lead) => {
    it("does not warn of credentials created within it, but reports their expiry", async () => {
      const { store, clock } = subject();
      await tell(store, lead);
      await tell(store, 0);
      const within = await createEnding(undefined, lead - 1);
      const { tenantId } = within;
      const level = await createEnding(tenantId, lead);
      clock.advance(1);
      await tell(store, lead);
      expect(await told(tenantId)).toMatchObject([{ applicationId: level.id }]);
      clock.advance(lead - 2);
      await tell(store, 0);
      expect(await told(tenantId)).toMatchObject([
        { applicationId: within.id },
        { applicationId: level.id },
      ]);
    });

    it("does not warn of credentials created within it before the first call", async () => {
      const { store, clock } = subject();
      const { tenantId } = await createEnding(undefined, lead - 1);
      const { id } = await createEnding(tenantId, lead);
      clock.advance(1);
      await tell(store, lead);
      expect(await told(tenantId)).toMatchObject([{ applicationId: id }]);
    });

    it("does not warn of an expiry that has passed", async () => {
      const { store, clock } = subject();
      await tell(store, lead);
      const { tenantId } = await createEnding();
      clock.advance(30 * day);
      await tell(store, lead);
      expect(await told(tenantId)).toEqual([]);
      await tell(store, 0);
      expect(await told(tenantId)).toHaveLength(1);
    });
  });

  it("reports expirations again after a clock that was far ahead is corrected", async () => {
    const { store, clock } = subject();
    clock.advance(365 * day);
    await Promise.all(leads.map((lead) => tell(store, lead)));
    clock.advance(-365 * day);
    const { id, tenantId, expiresAt } = await createEnding(randomUUID(), 30 * day);
    clock.advance(23 * day);
    await tell(store, week);
    clock.advance(7 * day);
    await tell(store, 0);
    const end = { applicationId: id, endsAt: expiresAt };
    expect(await told(tenantId)).toEqual([end, end]);
  });
}
