import { describe, expect, it } from "@jest/globals";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { useEventFollowers } from "../../support/api/followers.js";
import { aChangeContext, anIdempotencyId, aResponse, auditedChanges } from "./audited-changes.js";
import { anEvent, aState, listEvents } from "./event-fixtures.js";
import { anApplication, contentOf, must, times, update } from "./fixtures.js";
import type { Subject } from "./subject.js";

/** A change and its audit events and response are written together or not at all. */
export function describeAuditEvents(subject: () => Subject): void {
  const follow = useEventFollowers();

  describe.each(Object.entries(auditedChanges))("the audit event of a %s", (_, prepare) => {
    async function prepareChange() {
      const { store } = subject();
      const change = await prepare(store);
      const idempotencyId = anIdempotencyId();
      const response = aResponse();
      const readWritten = async () => ({
        events: await listEvents(store, { tenantId: change.tenantId }),
        response: await store.responses.find(idempotencyId),
      });
      return { ...subject(), change, idempotencyId, response, readWritten };
    }

    it("is written with the change", async () => {
      const { store, clock, change, idempotencyId, response, readWritten } = await prepareChange();
      const follower = follow(store, change.tenantId);
      await follower.next();
      await change.make(store, aChangeContext(idempotencyId, response));
      expect(await change.tookEffect()).toBe(true);
      const { events, response: found } = await readWritten();
      const target = { applicationId: change.id };
      expect(events).toMatchObject([{ target, at: clock.now() }]);
      expect(Buffer.from(must(found))).toEqual(Buffer.from(response.sealed));
      expect((await follower.next()).events).toEqual(events);
    });

    it("is derived from the changed record", async () => {
      const { store, change } = await prepareChange();
      const find = async () =>
        (await store.applications.find(change.id)) ??
        (await store.sessions.find(change.id))?.session;
      const before = await find();
      let changed: ApplicationRecord | SessionRecord | undefined;
      await change.make(store, {
        entriesFor(outcome) {
          changed = outcome;
          return { events: [] };
        },
      });
      expect(contentOf(changed)).toEqual(contentOf((await find()) ?? before));
    });

    it("is not written if the change is refused", async () => {
      const { change, idempotencyId, readWritten } = await prepareChange();
      for (const attempt of change.refusals) {
        await attempt(aChangeContext(idempotencyId)).catch(() => {});
        expect(await readWritten()).toEqual({ events: [], response: undefined });
      }
    });

    it("is not written if the call was canceled, nor is the change", async () => {
      const { store, change, idempotencyId, readWritten } = await prepareChange();
      const canceled = change.make(store, {
        ...aChangeContext(idempotencyId),
        isCanceled: () => true,
      });
      await expect(canceled).rejects.toBeInstanceOf(StoreUnavailable);
      expect(await change.tookEffect()).toBe(false);
      expect(await readWritten()).toEqual({ events: [], response: undefined });
    });

    it("rolls the change back if its events cannot be created", async () => {
      const { store, change, idempotencyId, readWritten } = await prepareChange();
      const error = Object.assign(new Error("disk full"), { code: 8 });
      const failing = change.make(store, {
        idempotencyId,
        entriesFor() {
          throw error;
        },
      });
      await expect(failing).rejects.toBe(error);
      expect(await change.tookEffect()).toBe(false);
      expect(await readWritten()).toEqual({ events: [], response: undefined });
      await change.make(store, aChangeContext(idempotencyId));
      expect(await change.tookEffect()).toBe(true);
    });
  });

  describe("the audit events of changes", () => {
    it("are all written, each in its tenant, in order", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication());
      const [foreign, ...own] = [anEvent(), ...times(3, () => anEvent({ tenantId }))];
      const follower = follow(store, tenantId);
      await follower.next();
      const context = { entriesFor: () => ({ events: [foreign, ...own] }) };
      await store.applications.delete(tenantId, id, undefined, context);
      const { events } = await follower.next();
      expect(events).toMatchObject(own);
      const { tenantId: other } = foreign;
      expect(await listEvents(store, { tenantId: other })).toMatchObject([foreign]);
    });

    it("are complete and in order for concurrent changes", async () => {
      const { store, another } = subject();
      const other = await another();
      const { id, tenantId } = await store.applications.create(anApplication());
      const follower = follow(store, tenantId);
      await follower.next();
      const updates = times(12, (index) =>
        (index % 2 ? store : other).applications.update(
          tenantId,
          id,
          ({ name }) => ({ name: `${name}+`, modifiedBy: id }),
          {
            entriesFor: ({ name }) => ({
              events: [anEvent({ tenantId, after: aState({ name }) })],
            }),
          },
        ),
      );
      await Promise.all(updates);
      const last = `shop${"+".repeat(12)}`;
      const received = await follower.until(({ after }) => after?.name === last);
      expect(received.map(({ after }) => after?.name)).toEqual(
        times(12, (index) => `shop${"+".repeat(index + 1)}`),
      );
    });

    it("are optional", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication());
      await update(store, application);
      expect(await listEvents(store, { tenantId: application.tenantId })).toEqual([]);
    });
  });
}
