import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import { type FailoverBug, failover } from "./failover.js";

describe("failovers of the shards", () => {
  it("lose no acknowledged change, and add no event of a change that was undone", () => {
    expectToHold(failover({ changes: 1, failovers: 3 }));
    expectToHold(failover());
  });

  it.each<[FailoverBug, string]>([
    ["acknowledges before a majority has the change", "acknowledgedChangesSurvive"],
    ["reads changes that a majority lacks", "noPhantomEvent"],
    ["adds entries before a majority has the record of the batch", "onePositionEach"],
    ["publishes before a majority has the entries", "publishedEventsAreInTheLog"],
    ["a new leader reads a position that a majority lacks", "onePositionEach"],
  ])("finds the planted bug: %s", (bug, property) => {
    expectToViolate(failover({ bug }), property);
  });
});
