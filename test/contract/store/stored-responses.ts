import { describe, expect, it } from "@jest/globals";
import { AlreadyApplied } from "../../../src/store/port/errors.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import {
  aChangeContext,
  anIdempotencyId,
  aResponse,
  auditedChanges,
  storeResponse,
  unauditedChanges,
} from "./audited-changes.js";
import { listEvents } from "./event-fixtures.js";
import { anApplication, hour, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeStoredResponses(subject: () => Subject): void {
  async function findBytes({ responses }: OperableStore, id: string) {
    const sealed = await responses.find(id);
    return sealed && Buffer.from(sealed);
  }

  describe("a stored response", () => {
    it("is found until it expires", async () => {
      const { store, another, clock } = subject();
      const other = await another();
      const [id, sealed] = [anIdempotencyId(), Buffer.from([0, 255, 128, 0])];
      expect(await store.responses.find(id)).toBeUndefined();
      await storeResponse(store, id, aResponse({ sealed }));
      clock.advance(hour - 1);
      for (const reader of [store, other]) {
        expect(await findBytes(reader, id)).toEqual(sealed);
        expect(await reader.responses.find(anIdempotencyId())).toBeUndefined();
      }
      clock.advance(1);
      for (const reader of [store, other]) {
        expect(await reader.responses.find(id)).toBeUndefined();
      }
    });

    it("can be empty or long", async () => {
      const { store } = subject();
      for (const size of [0, 300_000]) {
        const [id, sealed] = [anIdempotencyId(), Buffer.alloc(size, 7)];
        await storeResponse(store, id, aResponse({ sealed }));
        // toEqual would take seconds for so many bytes.
        expect(must(await findBytes(store, id)).equals(sealed)).toBe(true);
      }
    });

    it("can be replaced once it has expired", async () => {
      const { store, clock } = subject();
      const id = anIdempotencyId();
      await storeResponse(store, id, aResponse());
      clock.advance(hour);
      const { sealed } = aResponse();
      await storeResponse(store, id, { sealed, ttl: 2 * hour });
      clock.advance(2 * hour - 1);
      expect(await findBytes(store, id)).toEqual(Buffer.from(sealed));
      await expect(storeResponse(store, id, aResponse())).rejects.toBeInstanceOf(AlreadyApplied);
      clock.advance(1);
      expect(await store.responses.find(id)).toBeUndefined();
    });

    it("is stored only if the change has one", async () => {
      const { store } = subject();
      const id = anIdempotencyId();
      const create = (context: object) =>
        store.applications.create(anApplication(), { ...audit.created, ...context });
      await create({ idempotencyId: id });
      expect(await store.responses.find(id)).toBeUndefined();
      const other = anIdempotencyId();
      await create({ idempotencyId: other, responseFor: () => aResponse() });
      expect(await store.responses.find(other)).toBeDefined();
    });
  });

  describe.each(Object.entries({ ...auditedChanges, ...unauditedChanges }))(
    "a %s whose response is already stored",
    (_, prepare) => {
      it("is refused before it is tried", async () => {
        const { store, another } = subject();
        const change = await prepare(store);
        const [id, response] = [anIdempotencyId(), aResponse()];
        await storeResponse(store, id, response);
        const before = await listEvents(store, { tenantId: change.tenantId });
        const context = {
          idempotencyId: id,
          eventFor(): never {
            throw new Error("The change was tried.");
          },
        };
        for (const by of [store, await another()]) {
          await expect(change.make(by, context)).rejects.toBeInstanceOf(AlreadyApplied);
        }
        for (const attempt of change.refusals) {
          await expect(attempt(context)).rejects.toBeInstanceOf(AlreadyApplied);
        }
        expect(await change.tookEffect()).toBe(false);
        expect(await listEvents(store, { tenantId: change.tenantId })).toEqual(before);
        expect(await findBytes(store, id)).toEqual(Buffer.from(response.sealed));
      });
    },
  );

  describe("concurrent changes with the same idempotency id", () => {
    async function race(
      count: number,
      make: (store: OperableStore, index: number) => Promise<unknown>,
    ) {
      const { store, another } = subject();
      const other = await another();
      const outcomes = await Promise.allSettled(
        times(count, (index) => make(index % 2 ? other : store, index)),
      );
      const refused = outcomes.filter(
        (outcome) => outcome.status === "rejected" && outcome.reason instanceof AlreadyApplied,
      );
      expect(refused).toHaveLength(count - 1);
      return outcomes.findIndex(({ status }) => status === "fulfilled");
    }

    it("create one application", async () => {
      const { store } = subject();
      const { tenantId } = anApplication();
      const applications = times(20, () => anApplication({ tenantId }));
      const responses = times(20, () => aResponse());
      const id = anIdempotencyId();
      const winner = await race(20, (by, index) =>
        by.applications.create(
          must(applications[index]),
          aChangeContext(id, must(responses[index])),
        ),
      );
      const page = await store.applications.list({ tenantId, size: 20, from: { page: 1 } });
      expect(page.items).toMatchObject([{ keys: [{ id: must(applications[winner]).key.id }] }]);
      expect(await listEvents(store, { tenantId })).toHaveLength(1);
      expect(await findBytes(store, id)).toEqual(Buffer.from(must(responses[winner]).sealed));
    });

    it("change the application once", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const idempotencyId = anIdempotencyId();
      const winner = await race(20, (by, index) =>
        by.applications.update(
          tenantId,
          id,
          ({ permissions }) => ({
            permissions: [...permissions, `by:${index}`],
            modifiedBy: id,
          }),
          aChangeContext(idempotencyId),
        ),
      );
      const found = must(await store.applications.find(id));
      expect(found.permissions).toEqual([`by:${winner}`]);
      // Two instances do not order the events of one millisecond.
      const kinds = (await listEvents(store, { tenantId })).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(["application.created", "application.updated"]);
    });
  });
}
