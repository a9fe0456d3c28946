import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createWaitingLine } from "../src/server/waiting-line.js";

describe("a line", () => {
  it("gives everybody a turn, and each one", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areFirst) => {
        const line = createWaitingLine<number>();
        for (const [one, isFirst] of areFirst.entries()) {
          if (isFirst) {
            line.join(one);
          } else {
            line.joinAgain(one);
          }
        }
        expect(line.length).toBe(areFirst.length);
        const served = areFirst.map(() => line.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areFirst.keys()]);
        expect(line.length).toBe(0);
        expect(line.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of those who have had a turn", () => {
    const line = createWaitingLine<number>();
    for (let one = 0; one < 10; one++) {
      line.joinAgain(one);
    }
    expect(Array.from({ length: 10 }, () => line.next())).toEqual([...Array(10).keys()]);
  });

  it("keeps only those who are here", () => {
    const line = createWaitingLine<number>();
    for (let one = 0; one < 10; one++) {
      line.join(one);
      line.joinAgain(one);
    }
    line.keep((one) => one === 3);
    expect([line.length, line.next(), line.next(), line.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("lets whoever comes last to a thousand have one of the next four turns", () => {
    const line = createWaitingLine<string>();
    for (let one = 0; one < 1_000; one++) {
      line.join("early");
      line.joinAgain("again");
    }
    for (let turns = 0; turns < 4; turns++) {
      line.join("late");
      expect([line.next(), line.next(), line.next(), line.next()]).toContain("late");
      line.next();
    }
  });
});
