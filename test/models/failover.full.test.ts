import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { failover } from "./failover.js";

/** Left out for time: three changes. */
it("loses no acknowledged change with two changes and three failovers", () => {
  expectToHold(failover({ changes: 2, failovers: 3 }));
});
