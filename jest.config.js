import { accessSync, constants, mkdirSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";

const { HOME, XDG_CACHE_HOME } = process.env;
// Outside of node_modules, which `npm ci` removes. The tests keep MongoDB there too.
const cacheHome = [XDG_CACHE_HOME, HOME && join(HOME, ".cache")].find(isWritable) ?? tmpdir();
process.env.XDG_CACHE_HOME = cacheHome;

const swc = ["@swc/jest", { jsc: { parser: { syntax: "typescript" }, target: "es2023" } }];

// `npm run test:full` sets TEST_SUITE=full, which adds the files named *.full.test.ts.
const isFullSuite = process.env.TEST_SUITE === "full";

/** @type {import("jest").Config} */
export default {
  roots: ["<rootDir>/test"],
  testPathIgnorePatterns: isFullSuite ? [] : ["\\.full\\.test\\.ts$"],
  globalSetup: "<rootDir>/test/support/jest/global-setup.ts",
  globalTeardown: "<rootDir>/test/support/jest/global-teardown.ts",
  // The MongoDB driver imports `os` dynamically, which needs an experimental feature of Node here.
  transform: { "\\.ts$": swc, "/mongodb/lib/runtime_adapters\\.js$": swc },
  transformIgnorePatterns: ["/node_modules/(?!mongodb/lib/runtime_adapters)"],
  // Sources name the files they import as Node will see them, with .js.
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  testEnvironment: "<rootDir>/test/support/jest/environment.cjs",
  runtime: "<rootDir>/test/support/jest/runtime.cjs",
  testSequencer: "<rootDir>/test/support/jest/sequencer.mjs",
  reporters: ["default", "<rootDir>/test/support/jest/skip-reporter.mjs"],
  cacheDirectory: join(cacheHome, "latchkey", "jest"),
  // Only ends a test that hangs: a slow machine needs minutes for what takes seconds elsewhere.
  testTimeout: 400_000,
  // Two more than cores, since tests often wait.
  maxWorkers: availableParallelism() + 2,
};

function isWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
