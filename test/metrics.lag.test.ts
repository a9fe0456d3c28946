import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import { watchEventLoopLag } from "../src/metrics/event-loop-lag.js";

it("the lag of the event loop is told to everyone who asks, however often others have asked", async () => {
  const lag = watchEventLoopLag();
  try {
    await delay(100);
    const end = performance.now() + 300;
    while (performance.now() < end) {
      // Nobody else gets a turn.
    }
    await delay(100);
    for (let asked = 0; asked < 3; asked++) {
      const [family] = lag.families();
      expect(family?.values.at(-1)?.value).toBeGreaterThan(0.2);
      await delay(30);
    }
  } finally {
    lag.stop();
  }
});
