import { describe, expect, it } from "@jest/globals";
import type { OperableStore } from "../../support/store/operations.js";
import { createWithSession } from "./fixtures.js";
import type { Subject } from "./subject.js";

type List = (store: OperableStore, tenantId: string, signal: AbortSignal) => Promise<object>;

const lists: readonly (readonly [name: string, list: List])[] = [
  [
    "events",
    ({ events }, tenantId, signal) =>
      events.list({ tenantId, kinds: ["application.created"], size: 1 }, signal),
  ],
  [
    "applications",
    ({ applications }, tenantId, signal) =>
      applications.list({ tenantId, size: 1, from: { page: 1 } }, signal),
  ],
  [
    "filtered applications",
    ({ applications }, tenantId, signal) =>
      applications.list(
        { tenantId, filter: { namePrefix: "s" }, size: 1, from: { page: 1 } },
        signal,
      ),
  ],
  [
    "events that are counted",
    async ({ events }, tenantId, signal) => ({
      items: [await events.count({ tenantId, kinds: ["application.created"] }, 9, signal)],
    }),
  ],
  ["sessions", ({ sessions }, tenantId, signal) => sessions.list({ tenantId, size: 1 }, signal)],
];

export function describeAbortedLists(subject: () => Subject): void {
  describe("an aborted list", () => {
    it.each(lists)("stops reading %s and throws the abort reason", async (_, list) => {
      const { store } = subject();
      const { application } = await createWithSession(store);
      const { tenantId } = application;
      const reason = new Error("the caller disconnected");
      await expect(list(store, tenantId, AbortSignal.abort(reason))).rejects.toBe(reason);
      const { signal } = new AbortController();
      expect(await list(store, tenantId, signal)).toMatchObject({ items: expect.any(Array) });
    });
  });
}
