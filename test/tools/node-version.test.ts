import { expect, it } from "@jest/globals";

// `.ci/run` repeats tests on another version of Node and names it here.
const { EXPECTED_NODE = process.version } = process.env;

it("runs the tests in the expected version of Node", () => {
  expect(process.version).toBe(EXPECTED_NODE);
});
