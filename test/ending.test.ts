import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { Ending } from "../src/ending.js";

const [reason, another] = [new Error("The caller left."), new Error("The time is up.")];

let ending: Ending;

beforeEach(() => {
  jest.useFakeTimers();
  ending = new Ending();
});

afterEach(() => {
  jest.useRealTimers();
});

describe("a call that is given up", () => {
  it("tells its one listener why, and only the first time", () => {
    const told: Error[] = [];
    ending.onEnd((why) => told.push(why));
    ending.end(reason);
    ending.end(another);
    expect(told).toEqual([reason]);
    expect(ending.reason).toBe(reason);
  });

  it("tells nobody whose listening was taken over, or is over", () => {
    const told: string[] = [];
    const first = () => told.push("first");
    const second = () => told.push("second");
    ending.onEnd(first);
    ending.onEnd(second);
    ending.offEnd(first);
    ending.end(reason);
    expect(told).toEqual(["second"]);

    const left = new Ending();
    left.onEnd(second);
    left.offEnd(second);
    left.end(reason);
    expect(told).toEqual(["second"]);
  });

  it("gives its signal, whether it was asked for before or is only then", () => {
    const { signal } = ending;
    expect(signal.aborted).toBe(false);
    ending.end(reason);
    ending.end(another);
    expect(signal.reason).toBe(reason);
    expect(ending.signal).toBe(signal);

    const late = new Ending();
    late.end(reason);
    expect(late.signal.aborted).toBe(true);
    expect(late.signal.reason).toBe(reason);
  });
});

describe("a call that is given some time", () => {
  it("is given up when that is over, and not before", () => {
    const { signal } = ending;
    ending.endIn(50, () => another);
    jest.advanceTimersByTime(49);
    expect(ending.reason).toBeUndefined();
    jest.advanceTimersByTime(1);
    expect(ending.reason).toBe(another);
    expect(signal.reason).toBe(another);
  });

  it("is given up at once where that is none", () => {
    ending.endIn(0, () => another);
    expect(ending.reason).toBe(another);
    expect(jest.getTimerCount()).toBe(0);
  });

  it("is left alone when that is called off, and leaves no timer", () => {
    ending.endIn(50, () => another);
    ending.callOff();
    expect(jest.getTimerCount()).toBe(0);
    jest.advanceTimersByTime(100);
    expect(ending.reason).toBeUndefined();
  });

  it("keeps the reason that came first", () => {
    ending.endIn(50, () => another);
    ending.end(reason);
    jest.advanceTimersByTime(50);
    expect(ending.reason).toBe(reason);
  });

  it("tells how much is left of it, down to nothing", () => {
    expect(ending.timeLeft).toBeUndefined();
    ending.endIn(50, () => another);
    expect(ending.timeLeft).toBe(50);
    jest.advanceTimersByTime(20);
    expect(ending.timeLeft).toBe(30);
    jest.advanceTimersByTime(100);
    expect(ending.timeLeft).toBe(0);
  });
});

it("a call that nobody asks about makes no timer and no signal", () => {
  const abort = jest.spyOn(globalThis, "AbortController");
  const quiet = new Ending();
  quiet.onEnd(() => {});
  quiet.end(reason);
  quiet.callOff();
  expect(abort).not.toHaveBeenCalled();
  expect(jest.getTimerCount()).toBe(0);
  abort.mockRestore();
});
