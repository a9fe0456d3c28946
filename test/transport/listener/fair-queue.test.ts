import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createFairQueue } from "../../../src/transport/listener/call-scheduler.js";

describe("fair queue", () => {
  it("returns every item exactly once", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areNew) => {
        const queue = createFairQueue<number>();
        for (const [item, isNew] of areNew.entries()) {
          if (isNew) {
            queue.addNew(item);
          } else {
            queue.addReturning(item);
          }
        }
        expect(queue.length).toBe(areNew.length);
        const served = areNew.map(() => queue.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areNew.keys()]);
        expect(queue.length).toBe(0);
        expect(queue.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of returning items", () => {
    const queue = createFairQueue<number>();
    for (let item = 0; item < 10; item++) {
      queue.addReturning(item);
    }
    expect(Array.from({ length: 10 }, () => queue.next())).toEqual([...Array(10).keys()]);
  });

  it("retains only matching items", () => {
    const queue = createFairQueue<number>();
    for (let item = 0; item < 10; item++) {
      queue.addNew(item);
      queue.addReturning(item);
    }
    queue.retain((item) => item === 3);
    expect([queue.length, queue.next(), queue.next(), queue.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("returns a new item among the next four, however many are queued", () => {
    const queue = createFairQueue<string>();
    for (let count = 0; count < 1_000; count++) {
      queue.addNew("early");
      queue.addReturning("returning");
    }
    for (let round = 0; round < 4; round++) {
      queue.addNew("late");
      expect([queue.next(), queue.next(), queue.next(), queue.next()]).toContain("late");
      queue.next();
    }
  });
});
