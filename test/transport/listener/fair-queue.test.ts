import { describe, expect, it } from "@jest/globals";
import { createFairQueue } from "../../../src/transport/listener/fair-queue.js";
import { until } from "../../support/until.js";

interface Call {
  readonly from: object;
  readonly number: number;
}

/** Starts calls and records the order in which they ran. */
function createQueue() {
  const ran: Call[] = [];
  const startCall = createFairQueue<Call>((call) => ran.push(call));
  return {
    ran,
    start(from: object, count: number) {
      for (let number = 0; number < count; number++) {
        startCall(from, { from, number });
      }
    },
  };
}

describe("the calls of all connections", () => {
  it("start at once if they are few", () => {
    const { ran, start } = createQueue();
    start({}, 16);
    start({}, 16);
    expect(ran).toHaveLength(32);
  });

  it("all start in the order of their connection", async () => {
    const { ran, start } = createQueue();
    const connections = [{}, {}, {}];
    for (const connection of connections) {
      start(connection, 1_000);
    }
    await until(async () => ran.length === 3_000);
    for (const connection of connections) {
      const numbers = ran.filter(({ from }) => from === connection).map(({ number }) => number);
      expect(numbers).toEqual(numbers.map((_, index) => index));
    }
  });

  it("take turns, so that a flood does not delay a later connection", async () => {
    const { ran, start } = createQueue();
    const floods = Array.from({ length: 10 }, () => ({}));
    for (const flood of floods) {
      start(flood, 1_000);
    }
    const other = {};
    start(other, 1);
    await until(async () => ran.length === 10_001);
    const position = ran.findIndex(({ from }) => from === other);
    // At most the calls of one tick, and one call of each other connection.
    expect(position).toBeLessThanOrEqual(32 + floods.length);
  });

  it("start at once again after a flood", async () => {
    const { ran, start } = createQueue();
    start({}, 1_000);
    await until(async () => ran.length === 1_000);
    start({}, 1);
    expect(ran).toHaveLength(1_001);
  });
});
