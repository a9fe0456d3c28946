import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { lastManager } from "./last-manager.js";

it("leaves a manager of three with four changes, two of one manager, and an enable", () => {
  expectToHold(lastManager({ managers: 3, changes: [0, 1, 2, 0], enables: [0] }));
});
