import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Cancellation } from "../../src/lib/cancellation.js";
import { createResponseBudget } from "../../src/lib/response-budget.js";

const hour = 3_600_000;
const open = () => new Cancellation();

describe("the response budget", () => {
  it("keeps a response waiting until another one was read", async () => {
    const budget = createResponseBudget(200, hour);
    expect(budget.reserve("a", 40, open())).toBe(true);
    expect(budget.reserve("b", 50, open())).toBe(true);
    const waiting = budget.reserve("c", 20, open());
    expect(waiting).toBeInstanceOf(Promise);
    budget.update("a", 40, 0);
    expect(await waiting).toBe(true);
    expect(budget.used).toBe(70);
  });

  it("gives half to an owner, so that others do not wait for it", async () => {
    const budget = createResponseBudget(200, 1);
    expect(budget.reserve("slow", 30, open())).toBe(true);
    expect(await budget.reserve("slow", 30, open())).toBe(false);
    expect(budget.reserve("other", 30, open())).toBe(true);
  });

  it("keeps half for single records, so that they do not wait for lists", async () => {
    const budget = createResponseBudget(200, 1);
    expect(budget.reserve("slow", 50, open())).toBe(true);
    expect(await budget.reserve("slow", 10, open())).toBe(false);
    expect(budget.reserve("slow", 0, open())).toBe(true);
  });

  it("refuses a response that waits for too long", async () => {
    const budget = createResponseBudget(200, 1);
    expect(budget.reserve("a", 1_000, open())).toBe(true);
    expect(await budget.reserve("b", 0, open())).toBe(false);
    expect(budget.used).toBe(1_000);
  });

  it("reserves nothing for a call that was canceled while it waited", async () => {
    const budget = createResponseBudget(200, hour);
    const canceled = open();
    expect(budget.reserve("a", 90, open())).toBe(true);
    const waiting = budget.reserve("b", 20, canceled);
    canceled.cancel(new Error("gone"));
    budget.update("a", 90, 0);
    expect(await waiting).toBe(false);
    expect(budget.used).toBe(0);
  });

  it("never reserves more than its limit, except for a single response", async () => {
    const requests = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.nat(80)));
    await fc.assert(
      fc.asyncProperty(requests, async (all) => {
        const budget = createResponseBudget(200, hour);
        const reserved: [owner: string, bytes: number][] = [];
        const results = all.map(([owner, bytes]) =>
          Promise.resolve(budget.reserve(owner, bytes, open())).then((isReserved) => {
            reserved.push([owner, bytes]);
            return isReserved;
          }),
        );
        for (let read = 0; read < all.length; read++) {
          await new Promise((resolve) => setImmediate(resolve));
          expect(budget.used).toBe(reserved.reduce((sum, [, bytes]) => sum + bytes, 0));
          const large = reserved.filter(([, bytes]) => bytes > 0);
          expect(large.length <= 1 || budget.used <= 100).toBe(true);
          const [owner, bytes] = reserved.shift() ?? ["a", 0];
          budget.update(owner, bytes, 0);
        }
        expect(await Promise.all(results)).toEqual(all.map(() => true));
        expect(budget.used).toBe(0);
      }),
    );
  });
});
