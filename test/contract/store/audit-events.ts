import { describe, expect, it } from "@jest/globals";
import { AlreadyApplied, ChangeCanceled } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { useEventFollowers } from "../../support/api/followers.js";
import { audit } from "../../support/store/audit.js";
import { aChangeContext, anIdempotencyId, aResponse, auditedChanges } from "./audited-changes.js";
import { anEvent, aState, listEvents } from "./event-fixtures.js";
import { anApplication, aSession, contentOf, must, times } from "./fixtures.js";
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
      const { tenantId } = change;
      const earlier = (await listEvents(store, { tenantId })).length;
      const readWritten = async () => {
        const events = await listEvents(store, { tenantId });
        return {
          events: events.slice(0, events.length - earlier),
          response: await store.responses.find(idempotencyId),
        };
      };
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
        eventFor(outcome) {
          changed = outcome;
          return anEvent();
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
      await expect(canceled).rejects.toBeInstanceOf(ChangeCanceled);
      expect(await change.tookEffect()).toBe(false);
      expect(await readWritten()).toEqual({ events: [], response: undefined });
    });

    it("rolls the change back if it cannot be created", async () => {
      const { store, change, idempotencyId, readWritten } = await prepareChange();
      const error = Object.assign(new Error("disk full"), { code: 8 });
      const failing = change.make(store, {
        idempotencyId,
        eventFor() {
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
    it("are complete and in order for concurrent changes", async () => {
      const { store, another } = subject();
      const other = await another();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const follower = follow(store, tenantId);
      await follower.next();
      const updates = times(12, (index) =>
        (index % 2 ? store : other).applications.update(
          tenantId,
          id,
          ({ name }) => ({ name: `${name}+`, modifiedBy: id }),
          {
            eventFor: ({ name }) => anEvent({ tenantId, after: aState({ name }) }),
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

    it("do not include an update without changes, of which only the response is stored", async () => {
      const { store, clock } = subject();
      const created = await store.applications.create(anApplication(), audit.created);
      const { id, tenantId } = created;
      const idempotencyId = anIdempotencyId();
      const response = aResponse();
      clock.advance(1);
      const context = aChangeContext(idempotencyId, response);
      const updated = await store.applications.update(tenantId, id, () => undefined, context);
      expect(updated).toEqual(created);
      expect(await store.applications.find(id)).toEqual(created);
      const events = await listEvents(store, { tenantId });
      expect(events.map(({ kind }) => kind)).toEqual(["application.created"]);
      const found = must(await store.responses.find(idempotencyId));
      expect(Buffer.from(found)).toEqual(Buffer.from(response.sealed));
      const again = store.applications.update(tenantId, id, () => undefined, context);
      await expect(again).rejects.toBeInstanceOf(AlreadyApplied);
    });

    it("do not include the creation of a session", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      await store.sessions.create(aSession(application));
      const events = await listEvents(store, { tenantId: application.tenantId });
      expect(events.map(({ kind }) => kind)).toEqual(["application.created"]);
    });
  });
}
