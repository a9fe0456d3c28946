import { beforeEach, describe, expect, it } from "@jest/globals";
import { createWindow, mapConcurrently, type Window } from "../../src/lib/concurrency.js";
import { waitForNextTick } from "../../src/lib/event-loop.js";

let window: Window;

beforeEach(() => {
  window = createWindow({ total: 100, max: 40, min: 5 });
});

async function* endless(): AsyncGenerator<number> {
  for (let item = 0; ; item++) {
    yield item;
  }
}

/** Opens a stream of which only the first answer is taken. Counts what is begun. */
async function open() {
  let begun = 0;
  const map = async () => ++begun;
  const { signal } = new AbortController();
  const answers = mapConcurrently({ items: endless(), map, window, signal });
  await answers.next();
  for (let turn = 0; turn < 100; turn++) {
    await waitForNextTick();
  }
  return { begun: () => begun, close: () => answers.return(undefined) };
}

describe("what streams have under way", () => {
  it("is as much as one may have, where there are few of them", async () => {
    const streams = [await open(), await open()];
    expect(streams.map(({ begun }) => begun())).toEqual([41, 41]);
  });

  it("is a share of what all may have, where there are many", async () => {
    Array.from({ length: 9 }, window.enter);
    expect((await open()).begun()).toBe(11);
  });

  it("is never too little to go on", async () => {
    Array.from({ length: 999 }, window.enter);
    expect((await open()).begun()).toBe(6);
  });

  it("is more again once others have ended", async () => {
    const { close } = await open();
    Array.from({ length: 3 }, window.enter);
    expect(window.size()).toBe(25);
    await close();
    expect(window.size()).toBe(33);
  });
});
