import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { Cancellation } from "../../src/lib/cancellation.js";

describe("Cancellation", () => {
  const [reason, another] = [
    new Error("The client disconnected."),
    new Error("The deadline expired."),
  ];

  let cancellation: Cancellation;

  beforeEach(() => {
    jest.useFakeTimers();
    cancellation = new Cancellation();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  describe("a canceled call", () => {
    it("notifies its listener with the first reason only", () => {
      const reported: Error[] = [];
      cancellation.onCancel((why) => reported.push(why));
      cancellation.cancel(reason);
      cancellation.cancel(another);
      expect(reported).toEqual([reason]);
      expect(cancellation.reason).toBe(reason);
    });

    it("does not notify replaced or removed listeners", () => {
      const reported: string[] = [];
      const first = () => reported.push("first");
      const second = () => reported.push("second");
      cancellation.onCancel(first);
      cancellation.onCancel(second);
      cancellation.offCancel(first);
      cancellation.cancel(reason);
      expect(reported).toEqual(["second"]);

      const left = new Cancellation();
      left.onCancel(second);
      left.offCancel(second);
      left.cancel(reason);
      expect(reported).toEqual(["second"]);
    });

    it("aborts its signal, whether created before or after", () => {
      const { signal } = cancellation;
      expect(signal.aborted).toBe(false);
      cancellation.cancel(reason);
      cancellation.cancel(another);
      expect(signal.reason).toBe(reason);
      expect(cancellation.signal).toBe(signal);

      const late = new Cancellation();
      late.cancel(reason);
      expect(late.signal.aborted).toBe(true);
      expect(late.signal.reason).toBe(reason);
    });
  });

  describe("a call with a deadline", () => {
    it("is canceled at the deadline and not before", () => {
      const { signal } = cancellation;
      cancellation.cancelAfter(50, () => another);
      jest.advanceTimersByTime(49);
      expect(cancellation.reason).toBeUndefined();
      jest.advanceTimersByTime(1);
      expect(cancellation.reason).toBe(another);
      expect(signal.reason).toBe(another);
    });

    it("is canceled at once with a deadline of zero", () => {
      cancellation.cancelAfter(0, () => another);
      expect(cancellation.reason).toBe(another);
      expect(jest.getTimerCount()).toBe(0);
    });

    it("is not canceled after clearTimer, and leaves no timer", () => {
      cancellation.cancelAfter(50, () => another);
      cancellation.clearTimer();
      expect(jest.getTimerCount()).toBe(0);
      jest.advanceTimersByTime(100);
      expect(cancellation.reason).toBeUndefined();
    });

    it("keeps the first reason", () => {
      cancellation.cancelAfter(50, () => another);
      cancellation.cancel(reason);
      jest.advanceTimersByTime(50);
      expect(cancellation.reason).toBe(reason);
    });

    it("reports the remaining time down to zero", () => {
      expect(cancellation.timeLeft).toBeUndefined();
      cancellation.cancelAfter(50, () => another);
      expect(cancellation.timeLeft).toBe(50);
      jest.advanceTimersByTime(20);
      expect(cancellation.timeLeft).toBe(30);
      jest.advanceTimersByTime(100);
      expect(cancellation.timeLeft).toBe(0);
    });
  });

  it("creates no timer and no signal on its own", () => {
    const abort = jest.spyOn(globalThis, "AbortController");
    const quiet = new Cancellation();
    quiet.onCancel(() => {});
    quiet.cancel(reason);
    quiet.clearTimer();
    expect(abort).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
    abort.mockRestore();
  });
});
