import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { managerPermissions } from "../../../src/contract/grants.js";
import type { Expiration, NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord, KeyRecord } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { anEvent, day, listEvents } from "./event-fixtures.js";
import { anApplication, must, times, updateExpiry } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, importAll } from "./transfer-fixtures.js";

const week = 7 * day;
const leadTimes = [week, day, 0];

function toEvents({ tenantId, applicationId, keyId, at, leavesNoManager }: Expiration): NewEvent[] {
  const kind = leavesNoManager ? "last manager" : "expiring";
  return [anEvent({ tenantId, target: { applicationId, keyId }, kind, endsAt: at })];
}

/** Adds the events of all due expirations. */
async function addDueEvents({ events }: OperableStore, leadTime: number): Promise<void> {
  while ((await events.addExpirationEvents(leadTime, toEvents)) > 0) {}
}

/** Tests check a millisecond before an expiration is due, and when it is due. */
export function describeExpirationEvents(subject: () => Subject): void {
  /** Lists the events of expirations. */
  async function listExpirations(tenantId: string) {
    const events = await listEvents(subject().store, { tenantId });
    return events.filter(({ endsAt }) => endsAt !== undefined);
  }

  async function listReported(tenantId: string) {
    const events = await listExpirations(tenantId);
    return events.map(({ target, endsAt }) => ({ ...target, endsAt }));
  }

  async function createExpiring(tenantId: string = randomUUID(), after = 30 * day) {
    const { store, clock } = subject();
    const expiresAt = clock.now() + after;
    return store.applications.create(anApplication({ tenantId, expiresAt }), audit.created);
  }

  /** Imports applications that expire after the given times, which is faster than creating them. */
  async function importExpiring(tenantId: string, expiresAfter: readonly number[]) {
    const { store, clock } = subject();
    const applications = expiresAfter.map((after) =>
      anImportedApplication({ tenantId, expiresAt: clock.now() + after }),
    );
    await importAll(store, { applications });
    return applications;
  }

  function withExpiry({ id, hash, createdAt }: KeyRecord, expiresAt: number): KeyRecord {
    return { id, hash, createdAt, expiresAt };
  }

  /** Adds a key to an application, and sets the expiry of the old one. */
  async function rotate({ id, tenantId }: ApplicationRecord, expiresAt: number) {
    const { store } = subject();
    const key = { id: randomUUID(), hash: randomBytes(32) };
    const updated = await store.applications.update(
      tenantId,
      id,
      ({ keys: [old] }, now) => ({
        keys: [{ ...key, createdAt: now }, withExpiry(must(old), expiresAt)],
        modifiedBy: id,
      }),
      audit.updated,
    );
    return must(must(updated).keys[1]);
  }

  async function createWithExpiringKey() {
    const { store, clock } = subject();
    const application = await store.applications.create(anApplication(), audit.created);
    const endsAt = clock.now() + 30 * day;
    const { id: keyId } = await rotate(application, endsAt);
    return { application, keyId, endsAt };
  }

  describe.each(leadTimes.map((leadTime) => ({ leadTime, days: leadTime / day })))(
    "an expiry check with a lead time of $days days",
    ({ leadTime }) => {
      /** Adds due events once, since the first call also covers earlier expirations. */
      async function startReporting() {
        await addDueEvents(subject().store, leadTime);
        return subject();
      }

      it("reports the expiry of an application once", async () => {
        const { store, another, clock } = await startReporting();
        const { id: applicationId, tenantId, expiresAt: endsAt } = await createExpiring();
        clock.advance(30 * day - leadTime - 1);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([]);
        clock.advance(1);
        for (const by of [store, await another(), store]) {
          await addDueEvents(by, leadTime);
          expect(await listReported(tenantId)).toEqual([{ applicationId, endsAt }]);
        }
        clock.advance(1);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toHaveLength(1);
      });

      it("reports the expiry of a key once", async () => {
        const { store, clock } = await startReporting();
        const { application, keyId, endsAt } = await createWithExpiringKey();
        const { id: applicationId, tenantId } = application;
        clock.advance(30 * day - leadTime - 1);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([]);
        clock.advance(1);
        for (let count = 0; count < 2; count++) {
          await addDueEvents(store, leadTime);
          expect(await listReported(tenantId)).toEqual([{ applicationId, keyId, endsAt }]);
        }
      });

      it("reports each expiry once if two processes report at the same time", async () => {
        const { store, another, clock } = await startReporting();
        const other = await another();
        const { tenantId } = anApplication();
        const created = await importExpiring(
          tenantId,
          times(250, (index) => 30 * day + (index % 5)),
        );
        clock.advance(30 * day + 5 - leadTime);
        await Promise.all([store, other, store, other].map((by) => addDueEvents(by, leadTime)));
        const ids = (await listReported(tenantId)).map(({ applicationId }) => applicationId);
        expect(ids.sort()).toEqual(created.map(({ id }) => id).sort());
      });

      it("reports all expirations of one time", async () => {
        const { store, clock } = await startReporting();
        const { tenantId } = anApplication();
        await importExpiring(
          tenantId,
          times(250, () => 30 * day),
        );
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        const ids = (await listReported(tenantId)).map(({ applicationId }) => applicationId);
        expect(ids).toHaveLength(250);
        expect(new Set(ids).size).toBe(250);
      });

      it("reports the expiry of a disabled application", async () => {
        const { store, clock } = await startReporting();
        const { id, tenantId } = await createExpiring();
        await store.applications.update(
          tenantId,
          id,
          () => ({ disabled: true, modifiedBy: id }),
          audit.updated,
        );
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toHaveLength(1);
      });

      it("marks the expiry of a tenant's last manager", async () => {
        const { store, clock } = await startReporting();
        const tenantId = randomUUID();
        const manager = { tenantId, permissions: managerPermissions };
        let last: ApplicationRecord | undefined;
        for (const after of [30 * day, 31 * day]) {
          const expiresAt = clock.now() + after;
          last = await store.applications.create(
            anApplication({ ...manager, expiresAt }),
            audit.created,
          );
          await store.applications.create(anApplication({ tenantId, expiresAt }), audit.created);
        }
        const disabled = await store.applications.create(anApplication(manager), audit.created);
        const disable = () => ({ disabled: true, modifiedBy: disabled.id });
        await store.applications.update(tenantId, disabled.id, disable, audit.updated);
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        clock.advance(day);
        await addDueEvents(store, leadTime);
        const events = await listExpirations(tenantId);
        const lastManagerEvents = events.filter(({ kind }) => kind === "last manager");
        expect(lastManagerEvents).toMatchObject([{ target: { applicationId: last?.id } }]);
        expect(events).toHaveLength(4);
      });

      it("does not report deleted applications and keys", async () => {
        const { store, clock } = await startReporting();
        const { id, tenantId } = await createExpiring();
        await store.applications.delete(tenantId, id, audit.deleted);
        const { application } = await createWithExpiringKey();
        await store.applications.update(
          application.tenantId,
          application.id,
          ({ keys }) => ({
            keys: keys.slice(0, 1),
            modifiedBy: application.id,
          }),
          audit.updated,
        );
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([]);
        expect(await listReported(application.tenantId)).toEqual([]);
      });

      it("reports a postponed expiry at its new time", async () => {
        const { store, clock } = await startReporting();
        const { application, keyId, endsAt } = await createWithExpiringKey();
        const { id: applicationId, tenantId } = application;
        await store.applications.update(
          tenantId,
          applicationId,
          ({ keys }) => ({
            keys: keys.map((key) => (key.id === keyId ? withExpiry(key, endsAt + day) : key)),
            modifiedBy: applicationId,
          }),
          audit.updated,
        );
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([]);
        clock.advance(day);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([
          { applicationId, keyId, endsAt: endsAt + day },
        ]);
      });

      it.each([
        { change: "postponed", by: 5 * day },
        { change: "advanced", by: -5 * day },
      ])("reports the $change expiry of an application at its new time", async ({ by }) => {
        const { store, clock } = await startReporting();
        const application = await createExpiring();
        const { id: applicationId, tenantId, expiresAt = 0 } = application;
        await updateExpiry(store, application, expiresAt + by);
        clock.advance(30 * day + by - leadTime - 1);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([]);
        clock.advance(1);
        await addDueEvents(store, leadTime);
        clock.advance(Math.max(0, -by));
        await addDueEvents(store, leadTime);
        const expected = [{ applicationId, endsAt: expiresAt + by }];
        expect(await listReported(tenantId)).toEqual(expected);
      });

      it("does not report a removed expiry", async () => {
        const { store, clock } = await startReporting();
        const application = await createExpiring();
        await updateExpiry(store, application, null);
        clock.advance(30 * day);
        await addDueEvents(store, leadTime);
        expect(await listReported(application.tenantId)).toEqual([]);
      });

      it("does not report a key whose application expires first", async () => {
        const { store, clock } = await startReporting();
        const application = await createExpiring();
        const { id, tenantId, expiresAt: endsAt = 0 } = application;
        await rotate(application, endsAt + 1);
        clock.advance(30 * day + 1 - leadTime);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toEqual([{ applicationId: id, endsAt }]);
      });

      it("retries an expiry whose event failed", async () => {
        const { store, clock } = await startReporting();
        const { tenantId } = await createExpiring();
        clock.advance(30 * day - leadTime);
        const error = new Error("disk full");
        const failing = store.events.addExpirationEvents(leadTime, () => {
          throw error;
        });
        await expect(failing).rejects.toBe(error);
        expect(await listReported(tenantId)).toEqual([]);
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toHaveLength(1);
      });

      it("reports an expiry that was due before the first call", async () => {
        const { store, clock } = subject();
        const { tenantId } = await createExpiring();
        clock.advance(30 * day - Math.floor(leadTime / 2) + (leadTime ? 0 : 1_000));
        await addDueEvents(store, leadTime);
        expect(await listReported(tenantId)).toHaveLength(1);
      });

      it("reports once per lead time, independently of other lead times", async () => {
        const { store, clock } = await startReporting();
        const { tenantId } = await createExpiring();
        clock.advance(30 * day - leadTime);
        await addDueEvents(store, leadTime);
        await addDueEvents(store, leadTime + day);
        await addDueEvents(store, leadTime);
        expect((await listReported(tenantId)).length).toBe(leadTime === 0 ? 1 : 2);
      });
    },
  );

  describe.each([
    { leadTime: week, days: 7 },
    { leadTime: day, days: 1 },
  ])("an expiry check with a lead time of $days days", ({ leadTime }) => {
    it("does not warn of credentials created within it, but reports their expiry", async () => {
      const { store, clock } = subject();
      await addDueEvents(store, leadTime);
      await addDueEvents(store, 0);
      const within = await createExpiring(undefined, leadTime - 1);
      const { tenantId } = within;
      const atLead = await createExpiring(tenantId, leadTime);
      clock.advance(1);
      await addDueEvents(store, leadTime);
      expect(await listReported(tenantId)).toMatchObject([{ applicationId: atLead.id }]);
      clock.advance(leadTime - 2);
      await addDueEvents(store, 0);
      expect(await listReported(tenantId)).toMatchObject([
        { applicationId: within.id },
        { applicationId: atLead.id },
      ]);
    });

    it("does not warn of credentials created within it before the first call", async () => {
      const { store, clock } = subject();
      const { tenantId } = await createExpiring(undefined, leadTime - 1);
      const { id } = await createExpiring(tenantId, leadTime);
      clock.advance(1);
      await addDueEvents(store, leadTime);
      expect(await listReported(tenantId)).toMatchObject([{ applicationId: id }]);
    });

    it("does not warn of an expiry that has passed", async () => {
      const { store, clock } = subject();
      await addDueEvents(store, leadTime);
      const { tenantId } = await createExpiring();
      clock.advance(30 * day);
      await addDueEvents(store, leadTime);
      expect(await listReported(tenantId)).toEqual([]);
      await addDueEvents(store, 0);
      expect(await listReported(tenantId)).toHaveLength(1);
    });
  });

  it("reports expiration events again after a clock that was far ahead is corrected", async () => {
    const { store, clock } = subject();
    clock.advance(365 * day);
    await Promise.all(leadTimes.map((leadTime) => addDueEvents(store, leadTime)));
    clock.advance(-365 * day);
    const { id, tenantId, expiresAt } = await createExpiring(randomUUID(), 30 * day);
    clock.advance(23 * day);
    await addDueEvents(store, week);
    clock.advance(7 * day);
    await addDueEvents(store, 0);
    const expiration = { applicationId: id, endsAt: expiresAt };
    expect(await listReported(tenantId)).toEqual([expiration, expiration]);
  });
}
