import { describe, expect, it } from "@jest/globals";
import { nextTurn } from "../src/next-turn.js";
import { type CallTurns, createTurnsOfAll } from "../src/server/call-turns.js";

/** Takes so many calls of a connection, and notes each that is served under a name. */
function take(turns: CallTurns, count: number, name: string, served: string[]): void {
  for (let call = 0; call < count; call++) {
    if (turns.isFree()) {
      served.push(name);
    } else {
      turns.wait(() => served.push(name));
    }
  }
}

/** Takes longer than a turn should, by a clock that nothing else moves. */
let now = 0;
const clock = () => now;
function workLong(): void {
  now += 15;
}

describe("calls that come at once", () => {
  it("are served in the turn in which they come where they are few", () => {
    const served: string[] = [];
    take(createTurnsOfAll(clock)(), 16, "a", served);
    expect(served).toHaveLength(16);
  });

  it("wait for later turns where they are many on one connection", async () => {
    const served: string[] = [];
    take(createTurnsOfAll(clock)(), 100, "a", served);
    expect(served).toHaveLength(16);
    await nextTurn();
    await nextTurn();
    expect(served.length).toBeGreaterThan(16);
    expect(served.length).toBeLessThan(100);
  });

  it("wait where others have taken the time of a turn, on however many connections", () => {
    const served: string[] = [];
    const create = createTurnsOfAll(clock);
    for (let connection = 0; connection < 8; connection++) {
      take(create(), 1, "early", served);
    }
    workLong();
    take(create(), 1, "late", served);
    expect(served).not.toContain("late");
  });

  it("are all served in the end, those of a connection in their order", async () => {
    const served: number[] = [];
    const turns = createTurnsOfAll(clock)();
    for (let call = 0; call < 1_000; call++) {
      if (turns.isFree()) {
        served.push(call);
      } else {
        turns.wait(() => served.push(call));
      }
    }
    while (served.length < 1_000) {
      await nextTurn();
    }
    expect(served).toEqual(Array.from({ length: 1_000 }, (_, at) => at));
  });
});

describe("whoever comes when many wait", () => {
  it("does not wait for all of them", async () => {
    const served: string[] = [];
    const create = createTurnsOfAll(clock);
    for (let connection = 0; connection < 500; connection++) {
      const turns = create();
      turns.wait(() => served.push("many"));
      turns.wait(() => served.push("many"));
    }
    create().wait(() => served.push("one"));
    while (!served.includes("one")) {
      await nextTurn();
    }
    expect(served.length).toBeLessThan(100);
  });
});

describe("where a connection is opened with each turn", () => {
  it("one that takes long is served in it, so that those at the door need not wait for many", async () => {
    const served: string[] = [];
    const create = createTurnsOfAll(clock);
    const turns = create();
    for (let call = 0; call < 100; call++) {
      turns.wait(() => {
        workLong();
        served.push("a");
      });
    }
    await nextTurn();
    const counts: number[] = [];
    for (let turn = 0; turn < 10; turn++) {
      create();
      const before = served.length;
      await nextTurn();
      counts.push(served.length - before);
    }
    expect(new Set(counts)).toEqual(new Set([1]));
  });
});

describe("where calls take long", () => {
  it("few are served in a turn", async () => {
    const served: number[] = [];
    const turns = createTurnsOfAll(clock)();
    let turn = 0;
    for (let call = 0; call < 100; call++) {
      turns.wait(() => {
        workLong();
        served.push(turn);
      });
    }
    for (; turn < 6; turn++) {
      await nextTurn();
    }
    const inLast = served.filter((at) => at === 5).length;
    expect(inLast).toBeGreaterThan(0);
    expect(inLast).toBeLessThanOrEqual(4);
  });
});

describe("where thousands wait", () => {
  it("no more should, on whichever connection", () => {
    const create = createTurnsOfAll(clock);
    const turns = create();
    for (let call = 0; call < 24_000; call++) {
      expect(turns.isCrowded()).toBe(false);
      turns.wait(() => {});
    }
    expect(create().isCrowded()).toBe(true);
  });
});

describe("what counts for many", () => {
  it("waits where it is more than a connection may have in a turn", () => {
    const turns = createTurnsOfAll(clock)();
    expect([turns.isFree(10), turns.isFree(10)]).toEqual([true, false]);
  });
});
