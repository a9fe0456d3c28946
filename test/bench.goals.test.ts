import { describe, expect, it } from "@jest/globals";
import { type Goal, goalColumns, judge } from "../bench/goals.js";
import { percentile, spreadOf } from "../bench/statistics.js";
import { asMarkdown, tableOf } from "../bench/table.js";

function goalOf(limit: Goal["limit"], ...figures: number[]): Goal {
  return { path: "GET /", promise: "as said", limit, figures };
}

describe("the goals of the benchmark", () => {
  it.each([
    ["met", [1.4, 1.5, 1.8]],
    ["met", [1.5]],
    ["near", [1.4, 1.6, 1.7]],
    ["missed", [1.51, 1.6, 1.7]],
    ["missed", [Number.POSITIVE_INFINITY]],
    ["unknown", []],
    ["unknown", [Number.NaN, Number.NaN]],
  ])("are %s where at most 1.5 is asked for and %p was seen", (verdict, figures) => {
    expect(judge(goalOf({ atMost: 1.5 }, ...figures))).toBe(verdict);
  });

  it.each([
    ["met", [2, 3, 9]],
    ["near", [1, 2.9, 3]],
    ["missed", [1, 2, 2.9]],
    ["missed", [0]],
    ["unknown", []],
  ])("are %s where at least 3 is asked for and %p was seen", (verdict, figures) => {
    expect(judge(goalOf({ atLeast: 3 }, ...figures))).toBe(verdict);
  });

  it("are shown with the median, the range and the verdict", () => {
    const goals = [goalOf({ atMost: 1.5 }, 1.4, 1.6, 1.7), goalOf({ atMost: 1.5 })];
    expect(asMarkdown(tableOf(goalColumns, goals))).toBe(
      [
        "| Path | Goal | Measured | Met |",
        "| --- | --- | ---: | --- |",
        "| GET / | as said | 1.60 (1.40–1.70) | ✗, within the spread |",
        "| GET / | as said | – | not measured |",
      ].join("\n"),
    );
  });
});

describe("the statistics of the benchmark", () => {
  it("take the middle of an odd number of figures, and between the two middle ones of an even", () => {
    expect(spreadOf([3, 1, 10])).toEqual({ median: 3, low: 1, high: 10 });
    expect(spreadOf([4, 1, 2, 9])).toEqual({ median: 3, low: 1, high: 9 });
  });

  it("take the figure that so many percent do not exceed", () => {
    const figures = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect([0, 50, 99, 100].map((percent) => percentile(figures, percent))).toEqual([
      1, 50, 99, 100,
    ]);
  });
});
