import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createFairQueue } from "../../../src/transport/listener/call-scheduler.js";

describe("the fair queue", () => {
  it("returns every item exactly once", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areFirst) => {
        const queue = createFairQueue<number>();
        for (const [one, isFirst] of areFirst.entries()) {
          if (isFirst) {
            queue.addNew(one);
          } else {
            queue.addReturning(one);
          }
        }
        expect(queue.length).toBe(areFirst.length);
        const served = areFirst.map(() => queue.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areFirst.keys()]);
        expect(queue.length).toBe(0);
        expect(queue.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of returning items", () => {
    const queue = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      queue.addReturning(one);
    }
    expect(Array.from({ length: 10 }, () => queue.next())).toEqual([...Array(10).keys()]);
  });

  it("retains only matching items", () => {
    const queue = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      queue.addNew(one);
      queue.addReturning(one);
    }
    queue.retain((one) => one === 3);
    expect([queue.length, queue.next(), queue.next(), queue.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("returns the last of a thousand items among the next four", () => {
    const queue = createFairQueue<string>();
    for (let one = 0; one < 1_000; one++) {
      queue.addNew("early");
      queue.addReturning("again");
    }
    for (let turns = 0; turns < 4; turns++) {
      queue.addNew("late");
      expect([queue.next(), queue.next(), queue.next(), queue.next()]).toContain("late");
      queue.next();
    }
  });
});
