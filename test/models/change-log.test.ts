import { describe, it } from "@jest/globals";
import { changeLog } from "./change-log.js";
import type { ChangeLogBug, ChangeLogOptions } from "./change-log-state.js";
import { expectToHold, expectToViolate } from "./checker.js";

const twice = [{ record: 0 }, { record: 0 }];
const twoRecords = [{ record: 0 }, { record: 1 }];
const deletion = [{ record: 0, isDelete: true }];

describe("the log of changes", () => {
  it.each<[string, ChangeLogOptions]>([
    ["a leader crashes at any step", { changes: twice, crashes: 2, lists: 1 }],
    ["the oplog is overwritten before it was read", { changes: twice, losses: 1, lists: 1 }],
    ["two leaders work at once, and one pauses at any step", { changes: twice, leaders: 2 }],
    [
      "two leaders work at once, and the oplog is overwritten",
      { changes: twice, leaders: 2, losses: 1 },
    ],
    [
      "a record is deleted, and its tombstone removed",
      { changes: [...deletion, { record: 0 }], losses: 1, crashes: 1 },
    ],
    [
      "two records change, and the oplog is overwritten",
      { changes: twoRecords, losses: 1, crashes: 1 },
    ],
  ])("loses, repeats and reorders no event if %s", (_, options) => {
    expectToHold(changeLog(options));
  });

  it.each<[ChangeLogBug, string, ChangeLogOptions]>([
    ["forgets the last change", "everyChangeIsLogged", { changes: twice, losses: 1 }],
    [
      "forgets a young change without knowing the position",
      "everyChangeIsLogged",
      { changes: twice, losses: 1 },
    ],
    [
      "refuses changes while the log is far behind, but carries nothing",
      "everyChangeIsLogged",
      { changes: twice, losses: 1 },
    ],
    ["removes tombstones by age", "everyChangeIsLogged", { changes: deletion, losses: 1 }],
    [
      "positions from the stream, no recorded batch",
      "orderOfTheRecord",
      { changes: twice, leaders: 2, losses: 1 },
    ],
    [
      "records a batch whatever was recorded before",
      "listsAndReadersMissNothing",
      { changes: twice, leaders: 2 },
    ],
    [
      "new leader ignores the recorded batch",
      "listsAndReadersMissNothing",
      { changes: twice, leaders: 2, crashes: 1 },
    ],
    [
      "saves the position before the entries",
      "listsAndReadersMissNothing",
      { changes: twice, lists: 1 },
    ],
    [
      "restarts at the end of the oplog after a loss",
      "everyChangeIsLogged",
      { changes: twice, losses: 1 },
    ],
    [
      "publishes the position during a scan",
      "listsAndReadersMissNothing",
      { changes: twoRecords, lists: 1, losses: 1 },
    ],
    ["starts the stream after the scan", "everyChangeIsLogged", { changes: twoRecords, losses: 1 }],
    ["lists do not wait", "listsAndReadersMissNothing", { changes: twice, lists: 1 }],
  ])("finds the planted bug: %s", (bug, property, options) => {
    expectToViolate(changeLog({ ...options, bug }), property);
  });
});
