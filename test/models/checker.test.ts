import { describe, expect, it } from "@jest/globals";
import { check, expectToHold, expectToViolate, type Model } from "./checker.js";

/** Adds or doubles, up to a limit. */
function counter(
  limit: number,
  model: Partial<Model<{ count: number }>> = {},
): Model<{ count: number }> {
  return {
    initial: { count: 1 },
    next({ count }, step) {
      const add = (more: number) => (state: { count: number }) => {
        state.count += more;
        return state.count <= limit;
      };
      step("adds 1", add(1));
      step("doubles", add(count));
    },
    invariants: {},
    ...model,
  };
}

describe("the model checker", () => {
  it("visits every state once", () => {
    expect(check(counter(50))).toEqual({ trace: [], states: 50 });
  });

  it("finds a violation with a shortest trace", () => {
    const model = counter(50, {
      invariants: { notTwelve: ({ count }) => count !== 12 || "it is 12" },
    });
    expect(check(model)).toMatchObject({
      violated: "notTwelve",
      detail: "it is 12",
      trace: ["adds 1", "adds 1", "doubles", "doubles"],
      finalState: '{"count":12}',
    });
    expect(() => expectToHold(model)).toThrow(/notTwelve is violated: it is 12\n {2}1. adds 1\n/);
  });

  it("finds a state from which a goal can no longer be reached", () => {
    const reachesSeven = { to: ({ count }: { count: number }) => count === 7 };
    const model = counter(50, { reachable: { seven: reachesSeven } });
    expect(check(model)).toMatchObject({ violated: "seven", finalState: '{"count":8}' });
    const untilSeven = counter(50, {
      reachable: { seven: { ...reachesSeven, from: ({ count }) => count < 7 } },
    });
    expect(() => expectToHold(untilSeven)).not.toThrow();
  });

  it("refuses a planted bug that is not found, or found as another one", () => {
    const model = counter(5, { invariants: { small: ({ count }) => count < 4 || "large" } });
    expect(() => expectToViolate(model, "small")).not.toThrow();
    expect(() => expectToViolate(model, "even")).toThrow(
      /Expected a violation of even. small is violated/,
    );
    expect(() => expectToViolate(counter(5), "small")).toThrow(/All properties hold in 5 states/);
  });

  it("refuses a model with too many states", () => {
    expect(() => check(counter(50), 20)).toThrow("more than 20 states");
  });
});
