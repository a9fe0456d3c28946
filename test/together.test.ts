import { describe, expect, it } from "@jest/globals";
import { together } from "../src/access/together.js";
import { nextTurn } from "../src/next-turn.js";

/** Doubles numbers together, and notes each group that it is given. */
function createDoubling() {
  const groups: (readonly number[])[] = [];
  const double = together(async (items: readonly number[]) => {
    groups.push(items);
    return items.map((item) => 2 * item);
  });
  return { groups, double };
}

describe("what is asked for in one turn", () => {
  it("is done in one go, and each gets its own answer", async () => {
    const { groups, double } = createDoubling();
    const answers = await Promise.all([3, 1, 2, 1].map(double));
    expect(answers).toEqual([6, 2, 4, 2]);
    expect(groups).toEqual([[3, 1, 2, 1]]);
  });

  it("is done after the turn, and not in it", async () => {
    const { groups, double } = createDoubling();
    const answer = double(1);
    await Promise.resolve();
    expect(groups).toEqual([]);
    await answer;
    expect(groups).toEqual([[1]]);
  });

  it("includes what is asked for by those who wait in that turn", async () => {
    const { groups, double } = createDoubling();
    const askLater = async () => {
      for (let hops = 0; hops < 10; hops++) {
        await Promise.resolve();
      }
      return double(2);
    };
    await Promise.all([double(1), askLater()]);
    expect(groups).toEqual([[1, 2]]);
  });
});

describe("what is asked for in another turn", () => {
  it("is done by itself: nothing that was looked up before is an answer to it", async () => {
    const { groups, double } = createDoubling();
    await double(1);
    await double(1);
    expect(groups).toEqual([[1], [1]]);
  });

  it("does not wait for what is under way, and gets its own answer", async () => {
    const waiting: (() => void)[] = [];
    const echo = together(async (items: readonly string[]) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return items;
    });
    const first = echo("first");
    await nextTurn();
    const second = echo("second");
    await nextTurn();
    expect(waiting).toHaveLength(2);
    waiting[1]?.();
    expect(await second).toBe("second");
    waiting[0]?.();
    expect(await first).toBe("first");
  });
});

describe("a failure", () => {
  it("is that of all who asked together, and of nobody else", async () => {
    const failure = new Error("The store is gone.");
    let isBroken = true;
    const ask = together(async (items: readonly number[]) => {
      if (isBroken) {
        throw failure;
      }
      return items;
    });
    const results = await Promise.allSettled([ask(1), ask(2)]);
    expect(results).toEqual([
      { status: "rejected", reason: failure },
      { status: "rejected", reason: failure },
    ]);
    isBroken = false;
    expect(await ask(3)).toBe(3);
  });
});
