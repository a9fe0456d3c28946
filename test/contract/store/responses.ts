import { describe, expect, it } from "@jest/globals";
import { AlreadyApplied } from "../../../src/store/port/errors.js";
import type { Store } from "../../../src/store/port/store.js";
import { listEvents } from "./event-fixtures.js";
import { anApplication, hour, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anAnswer, anAnswerId, aTrail, keepAnswer, trailedChanges } from "./trailed-changes.js";

export function describeAnswers(subject: () => Subject): void {
  async function findBytes({ responses: answers }: Store, id: string) {
    const sealed = await answers.find(id);
    return sealed && Buffer.from(sealed);
  }

  describe("a stored response", () => {
    it("is found until it expires", async () => {
      const { store, another, clock } = subject();
      const other = await another();
      const [id, sealed] = [anAnswerId(), Buffer.from([0, 255, 128, 0])];
      expect(await store.responses.find(id)).toBeUndefined();
      await keepAnswer(store, id, anAnswer({ sealed }));
      clock.advance(hour - 1);
      for (const reader of [store, other]) {
        expect(await findBytes(reader, id)).toEqual(sealed);
        expect(await reader.responses.find(anAnswerId())).toBeUndefined();
      }
      clock.advance(1);
      for (const reader of [store, other]) {
        expect(await reader.responses.find(id)).toBeUndefined();
      }
    });

    it("may be empty or long", async () => {
      const { store } = subject();
      for (const size of [0, 300_000]) {
        const [id, sealed] = [anAnswerId(), Buffer.alloc(size, 7)];
        await keepAnswer(store, id, anAnswer({ sealed }));
        // To compare so many bytes one by one would take seconds.
        expect(must(await findBytes(store, id)).equals(sealed)).toBe(true);
      }
    });

    it("can be replaced once it has expired", async () => {
      const { store, clock } = subject();
      const id = anAnswerId();
      await keepAnswer(store, id, anAnswer());
      clock.advance(hour);
      const { sealed } = anAnswer();
      await keepAnswer(store, id, { sealed, ttl: 2 * hour });
      clock.advance(2 * hour - 1);
      expect(await findBytes(store, id)).toEqual(Buffer.from(sealed));
      await expect(keepAnswer(store, id, anAnswer())).rejects.toBeInstanceOf(AlreadyApplied);
      clock.advance(1);
      expect(await store.responses.find(id)).toBeUndefined();
    });

    it("is stored only if the change has one", async () => {
      const { store } = subject();
      const id = anAnswerId();
      const create = (trail: object) =>
        store.applications.create(anApplication(), {
          entriesFor: () => ({ events: [] }),
          ...trail,
        });
      await create({ idempotencyId: id });
      expect(await store.responses.find(id)).toBeUndefined();
      await create({
        idempotencyId: id,
        entriesFor: () => ({ events: [], response: anAnswer() }),
      });
      expect(await store.responses.find(id)).toBeDefined();
    });
  });

  describe.each(Object.entries(trailedChanges))("a %s whose response is stored", (_, prepare) => {
    it("refuses the change before anything is tried", async () => {
      const { store, another } = subject();
      const change = await prepare(store);
      const [id, answer] = [anAnswerId(), anAnswer()];
      await keepAnswer(store, id, answer);
      const trail = {
        idempotencyId: id,
        entriesFor(): never {
          throw new Error("It was tried.");
        },
      };
      for (const by of [store, await another()]) {
        await expect(change.make(by, trail)).rejects.toBeInstanceOf(AlreadyApplied);
      }
      for (const attempt of change.refusals) {
        await expect(attempt(trail)).rejects.toBeInstanceOf(AlreadyApplied);
      }
      expect(await change.tookEffect()).toBe(false);
      expect(await listEvents(store, { tenantId: change.tenantId })).toEqual([]);
      expect(await findBytes(store, id)).toEqual(Buffer.from(answer.sealed));
    });
  });

  describe("concurrent changes with the same idempotency id", () => {
    async function race(count: number, make: (store: Store, index: number) => Promise<unknown>) {
      const { store, another } = subject();
      const other = await another();
      const outcomes = await Promise.allSettled(
        times(count, (index) => make(index % 2 ? other : store, index)),
      );
      const kept = outcomes.filter(
        (outcome) => outcome.status === "rejected" && outcome.reason instanceof AlreadyApplied,
      );
      expect(kept).toHaveLength(count - 1);
      return outcomes.findIndex(({ status }) => status === "fulfilled");
    }

    it("create one application", async () => {
      const { store } = subject();
      const { tenantId } = anApplication();
      const applications = times(20, () => anApplication({ tenantId }));
      const answers = times(20, () => anAnswer());
      const id = anAnswerId();
      const winner = await race(20, (by, index) =>
        by.applications.create(must(applications[index]), aTrail(id, must(answers[index]))),
      );
      const page = await store.applications.list({ tenantId, size: 20, from: { page: 1 } });
      expect(page.items).toMatchObject([{ id: must(applications[winner]).id }]);
      expect(await listEvents(store, { tenantId })).toHaveLength(1);
      expect(await findBytes(store, id)).toEqual(Buffer.from(must(answers[winner]).sealed));
    });

    it("change the application once", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication());
      const answerId = anAnswerId();
      const winner = await race(20, (by, index) =>
        by.applications.update(
          tenantId,
          id,
          ({ permissions }) => ({
            permissions: [...permissions, `by:${index}`],
            modifiedBy: id,
          }),
          aTrail(answerId),
        ),
      );
      const found = must(await store.applications.find(id));
      expect(found.permissions).toEqual([`by:${winner}`]);
      expect(await listEvents(store, { tenantId })).toHaveLength(1);
    });
  });
}
