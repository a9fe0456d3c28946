import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { EventRecord, NewEvent } from "../../src/store/events.js";
import type { Subject } from "../store-contract.js";
import { useEventFollowers } from "../support/follow.js";
import { aLargeEvent, anEvent, largeTarget } from "./event-fixtures.js";
import { times } from "./fixtures.js";

const tenantId = randomUUID();

/** What several events may take together, said in a way that all engines keep to. */
const largest = 1.5 * 1024 * 1024;

/** Small events and large ones, of one tenant and of others, each known by its request. */
const mixed: NewEvent[] = times(24, (index) => {
  const fields = { requestId: String(index), tenantId: index % 4 === 1 ? randomUUID() : tenantId };
  return index % 3 === 0 ? anEvent(fields) : aLargeEvent(index % 3 === 1 ? 300 : 1_000, fields);
});
const ofTenant = mixed.filter((event) => event.tenantId === tenantId);

function requestsOf(events: readonly NewEvent[]) {
  return events.map(({ requestId }) => requestId);
}

function expectToBeBounded(events: readonly EventRecord[]): void {
  const size = Buffer.byteLength(JSON.stringify(events));
  expect(events.length === 1 || size < largest).toBe(true);
}

export function describeLargeEvents(subject: () => Subject): void {
  const follow = useEventFollowers();

  async function addAll(): Promise<void> {
    const { store, clock } = subject();
    for (const event of mixed) {
      await store.events.add([event]);
      clock.advance(1);
    }
  }

  describe("events that are large", () => {
    it.each([
      ["of their tenant", {}],
      ["of a kind", { kind: "application.updated" }],
      ["of a kind about one target", { kind: "application.updated", target: largeTarget }],
    ])("are listed few at a time: all %s, each once", async (_, query) => {
      const { store } = subject();
      await addAll();
      const listed: EventRecord[] = [];
      let after: string | undefined;
      do {
        const page = await store.events.list({ tenantId, ...query, size: 100, after });
        expect(page.items.length).toBeGreaterThan(0);
        expectToBeBounded(page.items);
        listed.push(...page.items);
        after = page.next;
      } while (after !== undefined);
      const isAskedFor = ({ target }: NewEvent) =>
        !("target" in query) || target.applicationId === query.target;
      expect(requestsOf(listed)).toEqual(requestsOf(ofTenant.filter(isAskedFor)).reverse());
    });

    it("fill no page beyond what is asked for", async () => {
      const { store } = subject();
      await addAll();
      const { items, next } = await store.events.list({ tenantId, size: 1 });
      const following = await store.events.list({ tenantId, size: 1, after: next });
      const newest = requestsOf(ofTenant).reverse();
      expect(requestsOf([...items, ...following.items])).toEqual(newest.slice(0, 2));
    });

    it("are told few at a time to who was there and to who comes back, from each batch on", async () => {
      const { store } = subject();
      const there = follow(store, tenantId);
      await there.next();
      const position = there.position();
      await addAll();
      const back = follow(store, tenantId, { after: position });
      for (const follower of [there, back]) {
        const told: EventRecord[] = [];
        while (told.length < ofTenant.length) {
          const { events, missed } = await follower.next();
          expect(missed).toBe(false);
          expectToBeBounded(events);
          told.push(...events);
        }
        expect(requestsOf(told)).toEqual(requestsOf(ofTenant));
      }

      const told: EventRecord[] = [];
      let after = position;
      while (told.length < ofTenant.length) {
        const once = follow(store, tenantId, { after });
        told.push(...(await once.next()).events);
        after = once.position();
        once.stop();
      }
      expect(requestsOf(told)).toEqual(requestsOf(ofTenant));
    });
  });
}
