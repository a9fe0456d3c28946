import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { EventRecord, NewEvent } from "../../../src/store/port/events.js";
import { useEventFollowers } from "../../support/api/followers.js";
import { aLargeEvent, anEvent, largeTarget } from "./event-fixtures.js";
import { times } from "./fixtures.js";
import type { Subject } from "./subject.js";

/** The size limit of several events together that all engines keep. */
const maxBytes = 1.5 * 1024 * 1024;

/** Small and large events of several tenants, identified by their request ids. */
function mixedEvents(tenantId: string): NewEvent[] {
  return times(12, (index) => {
    const fields = {
      requestId: String(index),
      tenantId: index % 4 === 1 ? randomUUID() : tenantId,
    };
    return index % 3 === 0 ? anEvent(fields) : aLargeEvent(index % 3 === 1 ? 300 : 1_000, fields);
  });
}

function requestIds(events: readonly NewEvent[]) {
  return events.map(({ requestId }) => requestId);
}

function expectToBeBounded(events: readonly EventRecord[]): void {
  const size = Buffer.byteLength(JSON.stringify(events));
  expect(events.length === 1 || size < maxBytes).toBe(true);
}

export function describeLargeEvents(subject: () => Subject): void {
  const follow = useEventFollowers();

  /** Adds large and small events, and returns those of the tenant. */
  async function addMixed(tenantId: string): Promise<NewEvent[]> {
    const { store, clock } = subject();
    const mixed = mixedEvents(tenantId);
    for (const event of mixed) {
      await store.events.add([event]);
      clock.advance(1);
    }
    return mixed.filter((event) => event.tenantId === tenantId);
  }

  describe("large events", () => {
    it("are listed few at a time, each once, by any filter", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const ofTenant = await addMixed(tenantId);
      const kinds = ["application.updated"];
      for (const query of [
        {},
        { kinds },
        { kinds, target: largeTarget },
        { principal: largeTarget },
      ]) {
        const listed: EventRecord[] = [];
        let after: string | undefined;
        do {
          const page = await store.events.list({ tenantId, ...query, size: 100, after });
          expect(page.items.length).toBeGreaterThan(0);
          expectToBeBounded(page.items);
          listed.push(...page.items);
          after = page.next;
        } while (after !== undefined);
        const matches = ({ target }: NewEvent) =>
          !("target" in query || "principal" in query) || target.applicationId === largeTarget;
        expect(requestIds(listed)).toEqual(requestIds(ofTenant.filter(matches)).reverse());
        expect(await store.events.count({ tenantId, ...query }, 10_000)).toBe(listed.length);
      }

      const { items, next } = await store.events.list({ tenantId, size: 1 });
      const following = await store.events.list({ tenantId, size: 1, after: next });
      const newest = requestIds(ofTenant).reverse();
      expect(requestIds([...items, ...following.items])).toEqual(newest.slice(0, 2));
    });

    it("are read once for all followers that receive them", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const followers = times(5, () => follow(store, tenantId));
      await Promise.all(followers.map((follower) => follower.next()));
      const batches = followers.map((follower) => follower.next());
      await store.events.add([aLargeEvent(300, { tenantId })]);
      const [first, ...others] = (await Promise.all(batches)).map(({ events }) => events[0]);
      expect(first).toBeDefined();
      for (const other of others) {
        expect(other).toBe(first);
      }
    });

    it("are received few at a time by current and resuming followers", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const current = follow(store, tenantId);
      await current.next();
      const position = current.position();
      const ofTenant = await addMixed(tenantId);
      const resumed = follow(store, tenantId, { after: position });
      for (const follower of [current, resumed]) {
        const received: EventRecord[] = [];
        while (received.length < ofTenant.length) {
          const { events, missed } = await follower.next();
          expect(missed).toBe(false);
          expectToBeBounded(events);
          received.push(...events);
        }
        expect(requestIds(received)).toEqual(requestIds(ofTenant));
      }

      const received: EventRecord[] = [];
      let after = position;
      while (received.length < ofTenant.length) {
        const single = follow(store, tenantId, { after });
        received.push(...(await single.next()).events);
        after = single.position();
        single.stop();
      }
      expect(requestIds(received)).toEqual(requestIds(ofTenant));
    });
  });
}
