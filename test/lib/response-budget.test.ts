import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Cancellation } from "../../src/lib/cancellation.js";
import {
  type CountedResponse,
  createResponseBudget,
  type ResponseBudget,
  type ResponseOwner,
} from "../../src/lib/response-budget.js";

const hour = 3_600_000;
const limit = 400;
/** The maximum size of a response in a sequence. */
const maxBytes = 25;
const open = () => new Cancellation();
const of = (caller: string): ResponseOwner => ({ tenant: caller.slice(0, 1), caller });

/** Sends a response of a caller, whose name starts with that of its tenant. Returns whether it was closed. */
function send(budget: ResponseBudget, caller: string, bytes: number): () => boolean {
  let isClosed = false;
  budget.open(of(caller)).send(bytes, () => {
    isClosed = true;
  });
  return () => isClosed;
}

describe("the response budget", () => {
  it("keeps a list waiting until another response was read", async () => {
    const budget = createResponseBudget(limit, hour);
    const first = (await budget.reserve(of("a1"), 80, open())) as CountedResponse;
    const waiting = budget.reserve(of("a1"), 30, open());
    expect(waiting).toBeInstanceOf(Promise);
    first.send(75, () => {});
    expect(budget.used).toBe(75);
    first.release();
    first.release();
    expect(await waiting).toBeDefined();
    expect(budget.used).toBe(30);
  });

  it("gives a quarter to a caller and half to a tenant", () => {
    const budget = createResponseBudget(limit, 1);
    expect(budget.reserve(of("a1"), 100, open())).not.toBeInstanceOf(Promise);
    expect(budget.reserve(of("a1"), 1, open())).toBeInstanceOf(Promise);
    expect(budget.reserve(of("a2"), 100, open())).not.toBeInstanceOf(Promise);
    expect(budget.reserve(of("a3"), 1, open())).toBeInstanceOf(Promise);
    expect(budget.reserve(of("b1"), 100, open())).not.toBeInstanceOf(Promise);
    expect(budget.reserve(of("c1"), 100, open())).not.toBeInstanceOf(Promise);
    expect(budget.reserve(of("d1"), 1, open())).toBeInstanceOf(Promise);
  });

  it("refuses lists of a tenant at once when 250 wait", async () => {
    const budget = createResponseBudget(limit, 1);
    budget.reserve(of("a1"), 100, open());
    const waiting = Array.from({ length: 250 }, () => budget.reserve(of("a1"), 100, open()));
    expect(waiting.every((each) => each instanceof Promise)).toBe(true);
    expect(budget.reserve(of("a1"), 100, open())).toBeUndefined();
    budget.reserve(of("b1"), 100, open());
    expect(budget.reserve(of("b1"), 100, open())).toBeInstanceOf(Promise);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 250 }));
    expect(budget.reserve(of("a1"), 100, open())).toBeInstanceOf(Promise);
  });

  it("accepts a single response of any size", () => {
    const budget = createResponseBudget(limit, hour);
    expect(budget.reserve(of("a1"), 1_000, open())).not.toBeInstanceOf(Promise);
  });

  it("closes the oldest unread responses of a caller for its next one", () => {
    const budget = createResponseBudget(limit);
    const closed = [60, 30, 60].map((bytes) => send(budget, "a1", bytes));
    expect(closed.map((isClosed) => isClosed())).toEqual([true, false, false]);
    expect(budget.used).toBe(90);
  });

  it("closes responses of the largest caller of the largest tenant for others", () => {
    const budget = createResponseBudget(limit);
    const others = ["b1", "c1"].map((caller) => send(budget, caller, 95));
    const small = send(budget, "a1", 90);
    const large = send(budget, "a2", 100);
    expect(send(budget, "d1", 30)()).toBe(false);
    expect(large()).toBe(true);
    expect([small(), ...others.map((isClosed) => isClosed())]).toEqual([false, false, false]);
  });

  it("closes unread responses for a list that has waited long enough", async () => {
    const budget = createResponseBudget(limit, 1);
    const closed = [40, 40].map((bytes) => send(budget, "a1", bytes));
    expect(await budget.reserve(of("a1"), 30, open())).toBeDefined();
    expect(closed.map((isClosed) => isClosed())).toEqual([true, false]);
    expect(budget.used).toBe(70);
  });

  it("refuses a list if others are being built for too long", async () => {
    const budget = createResponseBudget(limit, 1);
    await budget.reserve(of("a1"), 90, open());
    expect(await budget.reserve(of("a1"), 20, open())).toBeUndefined();
    expect(budget.used).toBe(90);
  });

  it("reserves nothing for a call that was canceled while it waited", async () => {
    const budget = createResponseBudget(limit, hour);
    const canceled = open();
    const first = (await budget.reserve(of("a1"), 90, open())) as CountedResponse;
    const waiting = budget.reserve(of("a1"), 20, canceled);
    canceled.cancel(new Error("gone"));
    first.release();
    expect(await waiting).toBeUndefined();
    expect(budget.used).toBe(0);
  });

  it("closes nothing for a call that was canceled while it waited", async () => {
    const budget = createResponseBudget(limit, 1);
    const canceled = open();
    const isClosed = send(budget, "a1", 90);
    const waiting = budget.reserve(of("a1"), 20, canceled);
    canceled.cancel(new Error("gone"));
    expect(await waiting).toBeUndefined();
    expect(isClosed()).toBe(false);
  });
});

interface Step {
  readonly caller: string;
  readonly kind: "send" | "list" | "read";
  readonly bytes: number;
}

const kinds = fc.constantFrom("send", "send", "send", "list", "list", "read") as fc.Arbitrary<
  Step["kind"]
>;

/** Steps of callers: to send a response, to build and send a list, or to read the oldest one. */
function stepsOf(...callers: string[]): fc.Arbitrary<Step[]> {
  const step = fc.record({
    caller: fc.constantFrom(...callers),
    kind: kinds,
    bytes: fc.integer({ min: 10, max: maxBytes }),
  });
  // Enough to use up every share.
  return fc.array(step, { minLength: 60, maxLength: 120 });
}

interface Tracked {
  readonly caller: string;
  readonly response: CountedResponse;
  /** Whether it is a list that is being built. */
  isList: boolean;
  bytes: number;
}

/** A budget with the responses that take its memory. */
function createTracker() {
  const budget = createResponseBudget(limit, 1);
  const tracked = new Set<Tracked>();
  const closed: string[] = [];
  let waited = 0;

  function track(caller: string, response: CountedResponse, isList: boolean): Tracked {
    const entry = { caller, response, isList, bytes: 0 };
    tracked.add(entry);
    return entry;
  }

  function sendResponse(entry: Tracked, bytes: number): void {
    entry.bytes = bytes;
    entry.response.send(bytes, () => {
      tracked.delete(entry);
      closed.push(entry.caller);
    });
  }

  return {
    budget,
    tracked,
    /** The callers whose responses were closed. */
    closed,
    get waited() {
      return waited;
    },
    usedBy: (caller: string) =>
      [...tracked]
        .filter((entry) => entry.caller.startsWith(caller))
        .reduce((sum, { bytes }) => sum + bytes, 0),

    take({ caller, kind, bytes }: Step): void {
      if (kind === "send") {
        sendResponse(track(caller, budget.open(of(caller)), false), bytes);
        return;
      }
      const oldest = [...tracked].find((entry) => entry.caller === caller);
      if (kind === "read") {
        oldest?.response.release();
        tracked.delete(oldest as Tracked);
      } else if (oldest?.isList) {
        oldest.isList = false;
        sendResponse(oldest, Math.ceil(bytes / 2));
      } else {
        const canceled = open();
        const reserved = budget.reserve(of(caller), bytes, canceled);
        if (reserved instanceof Promise) {
          waited++;
          canceled.cancel(new Error("gone"));
        } else if (reserved) {
          track(caller, reserved, true).bytes = bytes;
        }
      }
    },
  };
}

describe("any sequence of responses", () => {
  it("takes no more memory than its shares, except for the last response", () => {
    fc.assert(
      fc.property(stepsOf("a1", "a2", "a3", "b1", "c1"), (steps) => {
        const tracker = createTracker();
        const shares = { a1: 4, a2: 4, a3: 4, b1: 4, c1: 4, a: 2, b: 2, c: 2, "": 1 };
        for (const step of steps) {
          tracker.take(step);
          const exceeded = Object.entries(shares).filter(
            ([group, share]) => tracker.usedBy(group) > limit / share + maxBytes,
          );
          expect(exceeded).toEqual([]);
          expect(tracker.budget.used).toBe(tracker.usedBy(""));
        }
        for (const { response } of tracker.tracked) {
          response.release();
        }
        expect(tracker.budget.used).toBe(0);
      }),
    );
  });

  it("of one tenant neither closes nor delays responses of another", () => {
    expectUnaffected(stepsOf("a1", "a2", "a3", "a4"), "b1");
  });

  it("of one caller neither closes nor delays responses of others in its tenant", () => {
    expectUnaffected(stepsOf("a1"), "a2");
  });

  /** Expects that whatever others do, a caller that reads its responses gets them. */
  function expectUnaffected(others: fc.Arbitrary<Step[]>, caller: string): void {
    fc.assert(
      fc.property(others, stepsOf(caller), (slow, own) => {
        const tracker = createTracker();
        for (const [at, step] of slow.entries()) {
          tracker.take(step);
          const before = tracker.waited;
          const next = own[at];
          if (next) {
            tracker.take(next);
            while (tracker.usedBy(caller) > maxBytes) {
              tracker.take({ caller, kind: "read", bytes: 0 });
            }
          }
          expect(tracker.waited).toBe(before);
        }
        expect(tracker.closed).not.toContain(caller);
      }),
    );
  }
});
