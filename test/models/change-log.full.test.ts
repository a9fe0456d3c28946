import { describe, it } from "@jest/globals";
import { changeLog } from "./change-log.js";
import type { ChangeLogOptions } from "./change-log-state.js";
import { expectToHold } from "./checker.js";

const twice = [{ record: 0 }, { record: 0 }];

/** Left out for time: three changes with two leaders (600,000 states), and three changes with a list. */
describe("the log of changes, in larger models", () => {
  it("needs no recorded batch while the oplog is not overwritten", () => {
    expectToHold(
      changeLog({
        changes: twice,
        leaders: 2,
        bug: "positions from the stream, no recorded batch",
      }),
    );
  });

  it.each<[string, ChangeLogOptions]>([
    [
      "two leaders, a crash and an overwritten oplog",
      { changes: twice, leaders: 2, losses: 1, crashes: 1 },
    ],
    [
      "two leaders, an overwritten oplog and a list",
      { changes: twice, leaders: 2, losses: 1, lists: 1, batchSize: 1 },
    ],
    ["two leaders, and the oplog overwritten twice", { changes: twice, leaders: 2, losses: 2 }],
    [
      "two changes and a delete with one leader",
      { changes: [...twice, { record: 0, isDelete: true }], losses: 1, crashes: 1 },
    ],
    [
      "two changes of one record and one of another with one leader",
      { changes: [...twice, { record: 1 }], losses: 1, crashes: 1 },
    ],
    [
      "two records with two leaders",
      { changes: [{ record: 0 }, { record: 1 }], leaders: 2, losses: 1, crashes: 1 },
    ],
  ])("loses, repeats and reorders no event with %s", (_, options) => {
    expectToHold(changeLog(options));
  });
});
