import { stat } from "node:fs/promises";
import { getActiveResourcesInfo } from "node:process";
import { describe, expect, it } from "@jest/globals";
import { inTime } from "../src/in-time.js";
import { thenStandStill } from "./support/then-stand-still.js";

const never = new Promise<never>(() => {});
const anHour = 3_600_000;

function refuse(): never {
  throw new Error("late");
}

describe("waiting for an answer in time", () => {
  it("ends with the answer, or with why there is none", async () => {
    expect(await inTime(Promise.resolve("here"), anHour, refuse)).toBe("here");
    await expect(inTime(Promise.reject(new Error("lost")), anHour, refuse)).rejects.toThrow("lost");
  });

  it("ends without it when the time is up, as the waiting one likes", async () => {
    expect(await inTime(never, 1, () => "nothing")).toBe("nothing");
    await expect(inTime(never, 1, refuse)).rejects.toThrow("late");
  });

  it("ends with an answer that is there when the time is up, though nobody has looked", async () => {
    const answer = await thenStandStill(() => inTime(stat("."), 1, refuse), 200);
    expect(answer.isDirectory()).toBe(true);
  });

  it("leaves an answer that comes too late alone, be it a failure", async () => {
    const { promise, reject } = createDeferred();
    await inTime(promise, 1, () => undefined);
    reject(new Error("lost"));
    await new Promise(setImmediate);
  });

  it("keeps no process running", () => {
    const timers = () => getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    void inTime(never, anHour, refuse);
    expect(timers()).toBe(before);
  });
});

function createDeferred() {
  let reject: (reason: Error) => void = () => {};
  const promise = new Promise<never>((_, refuse) => {
    reject = refuse;
  });
  return { promise, reject };
}
