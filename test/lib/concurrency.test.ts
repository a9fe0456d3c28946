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

/** Opens a stream, reads only its first result, and counts the started items. */
async function open() {
  let begun = 0;
  const map = async () => ++begun;
  const { signal } = new AbortController();
  const results = mapConcurrently({ items: endless(), map, window, signal });
  await results.next();
  for (let turn = 0; turn < 100; turn++) {
    await waitForNextTick();
  }
  return { begun: () => begun, close: () => results.return(undefined) };
}

describe("createWindow", () => {
  it("allows the maximum per stream if there are few streams", async () => {
    const streams = [await open(), await open()];
    expect(streams.map(({ begun }) => begun())).toEqual([41, 41]);
  });

  it("divides the total among many streams", async () => {
    Array.from({ length: 9 }, window.enter);
    expect((await open()).begun()).toBe(11);
  });

  it("never falls below the minimum per stream", async () => {
    Array.from({ length: 999 }, window.enter);
    expect((await open()).begun()).toBe(6);
  });

  it("grows again when streams end", async () => {
    const { close } = await open();
    Array.from({ length: 3 }, window.enter);
    expect(window.size()).toBe(25);
    await close();
    expect(window.size()).toBe(33);
  });
});
