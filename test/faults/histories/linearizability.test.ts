import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { findOrder, findViolation, type Operation } from "./linearizability.js";

/** A call on a number that starts as 0. */
interface Call {
  readonly kind: "read" | "write" | "increment";
  /** The number that was read or written, or the result of the increment. */
  readonly value: number;
  readonly startedAt: number;
  readonly duration: number;
  readonly isUnknown: boolean;
}

const transitions: Record<Call["kind"], (value: number) => Operation<number>["apply"]> = {
  read: (value) => (state) => (state === value ? state : undefined),
  write: (value) => () => value,
  increment: (value) => (state) => (state + 1 === value ? value : undefined),
};

function toOperation({ kind, value, startedAt, duration, isUnknown }: Call): Operation<number> {
  return {
    startedAt,
    endedAt: isUnknown ? Number.POSITIVE_INFINITY : startedAt + duration,
    isRead: kind === "read",
    apply: transitions[kind](value),
  };
}

const value = fc.integer({ min: 0, max: 2 });
const histories = fc
  .array(
    fc.record<Call>({
      kind: fc.constantFrom("read", "write", "increment"),
      value,
      startedAt: fc.integer({ min: 0, max: 12 }),
      duration: fc.integer({ min: 0, max: 6 }),
      isUnknown: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
    }),
    { maxLength: 6 },
  )
  .map((calls) => calls.map(toOperation));

/** Tries every order of every choice of the optional operations. */
function isLinearizable(left: readonly Operation<number>[], state = 0): boolean {
  const required = left.filter(({ endedAt }) => endedAt < Number.POSITIVE_INFINITY);
  return (
    required.length === 0 ||
    left.some((first) => {
      const others = left.filter((operation) => operation !== first);
      const after = first.apply(state);
      return (
        after !== undefined &&
        others.every(({ endedAt }) => endedAt >= first.startedAt) &&
        isLinearizable(others, after)
      );
    })
  );
}

describe("the search for a sequential order", () => {
  it("agrees with a search of all orders", () => {
    fc.assert(
      fc.property(histories, (history) => {
        expect(findOrder(0, history) !== undefined).toBe(isLinearizable(history));
      }),
      { numRuns: 3_000 },
    );
  });

  it("returns an order in which each outcome is possible and each operation is in its interval", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const order = findOrder(0, history) ?? [];
        order.reduce((state, { apply }) => {
          const after = apply(state);
          expect(after).toBeDefined();
          return after as number;
        }, 0);
        order.forEach(({ startedAt }, index) => {
          const later = order.slice(index + 1);
          expect(later.filter(({ endedAt }) => endedAt < startedAt)).toEqual([]);
        });
      }),
    );
  });

  it("reports the first moment without an order, and only the reads that show it", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const violation = findViolation(0, history);
        expect(violation === undefined).toBe(isLinearizable(history));
        if (!violation) {
          return;
        }
        const { operations, culprit } = violation;
        const until = (end: number) =>
          operations
            .filter(({ startedAt }) => startedAt <= end)
            .map((operation) =>
              operation.endedAt > end
                ? { ...operation, endedAt: Number.POSITIVE_INFINITY }
                : operation,
            );
        const before = Math.max(
          ...operations.map(({ endedAt }) => endedAt).filter((end) => end < culprit.endedAt),
        );
        expect(isLinearizable(until(culprit.endedAt))).toBe(false);
        expect(isLinearizable(until(before))).toBe(true);
        for (const read of operations.filter(({ isRead }) => isRead)) {
          const others = until(culprit.endedAt).filter(({ apply }) => apply !== read.apply);
          expect(read === culprit || isLinearizable(others)).toBe(true);
        }
      }),
    );
  });
});
