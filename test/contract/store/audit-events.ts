import { describe, expect, it } from "@jest/globals";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { useEventFollowers } from "../../support/api/followers.js";
import { anEvent, listEvents } from "./event-fixtures.js";
import { anApplication, contentOf, must, times, update } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anAnswer, anAnswerId, aTrail, trailedChanges } from "./trailed-changes.js";

/** What a change leaves is there if the change took effect, and only then. */
export function describeTrails(subject: () => Subject): void {
  const follow = useEventFollowers();

  describe.each(Object.entries(trailedChanges))("the audit event of a %s", (_, prepare) => {
    async function prepared() {
      const { store } = subject();
      const change = await prepare(store);
      const answerId = anAnswerId();
      const answer = anAnswer();
      const left = async () => ({
        events: await listEvents(store, { tenantId: change.tenantId }),
        answer: await store.responses.find(answerId),
      });
      return { ...subject(), change, answerId, answer, left };
    }

    it("is written with the change", async () => {
      const { store, clock, change, answerId, answer, left } = await prepared();
      const follower = follow(store, change.tenantId);
      await follower.next();
      await change.make(store, aTrail(answerId, answer));
      expect(await change.tookEffect()).toBe(true);
      const { events, answer: found } = await left();
      const target = { applicationId: change.id };
      expect(events).toMatchObject([{ target, at: clock.now() }]);
      expect(Buffer.from(must(found))).toEqual(Buffer.from(answer.sealed));
      expect((await follower.next()).events).toEqual(events);
    });

    it("is derived from the changed record", async () => {
      const { store, change } = await prepared();
      const find = async () =>
        (await store.applications.find(change.id)) ??
        (await store.sessions.find(change.id))?.session;
      const before = await find();
      let seen: ApplicationRecord | SessionRecord | undefined;
      await change.make(store, {
        entriesFor(outcome) {
          seen = outcome;
          return { events: [] };
        },
      });
      expect(contentOf(seen)).toEqual(contentOf((await find()) ?? before));
    });

    it("is not written if the change is refused", async () => {
      const { change, answerId, left } = await prepared();
      for (const attempt of change.refusals) {
        await attempt(aTrail(answerId)).catch(() => {});
        expect(await left()).toEqual({ events: [], answer: undefined });
      }
    });

    it("is not written if the call was canceled, nor is the change", async () => {
      const { store, change, answerId, left } = await prepared();
      const given = change.make(store, { ...aTrail(answerId), isCanceled: () => true });
      await expect(given).rejects.toBeInstanceOf(StoreUnavailable);
      expect(await change.tookEffect()).toBe(false);
      expect(await left()).toEqual({ events: [], answer: undefined });
    });

    it("rolls the change back if its events cannot be created", async () => {
      const { store, change, answerId, left } = await prepared();
      const error = Object.assign(new Error("There is no room."), { code: 8 });
      const made = change.make(store, {
        idempotencyId: answerId,
        entriesFor() {
          throw error;
        },
      });
      await expect(made).rejects.toBe(error);
      expect(await change.tookEffect()).toBe(false);
      expect(await left()).toEqual({ events: [], answer: undefined });
      await change.make(store, aTrail(answerId));
      expect(await change.tookEffect()).toBe(true);
    });
  });

  describe("the audit events of changes", () => {
    it("are all written, each in its tenant, in order", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication());
      const [elsewhere, ...here] = [anEvent(), ...times(3, () => anEvent({ tenantId }))];
      const follower = follow(store, tenantId);
      await follower.next();
      const trail = { entriesFor: () => ({ events: [elsewhere, ...here] }) };
      await store.applications.delete(tenantId, id, undefined, trail);
      const { events } = await follower.next();
      expect(events).toMatchObject(here);
      const { tenantId: other } = elsewhere;
      expect(await listEvents(store, { tenantId: other })).toMatchObject([elsewhere]);
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
            entriesFor: ({ name, permissions, rules }) => ({
              events: [anEvent({ tenantId, after: { name, permissions, rules } })],
            }),
          },
        ),
      );
      await Promise.all(updates);
      const last = `shop${"+".repeat(12)}`;
      const told = await follower.until(({ after }) => after?.name === last);
      expect(told.map(({ after }) => after?.name)).toEqual(
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
