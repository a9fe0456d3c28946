const swc = ["@swc/jest", { jsc: { parser: { syntax: "typescript" }, target: "es2023" } }];

// `npm run test:full` sets TEST_SUITE=full, which adds the files named *.full.test.ts.
const isFullSuite = process.env.TEST_SUITE === "full";

/** @type {import("jest").Config} */
export default {
  roots: ["<rootDir>/test"],
  testPathIgnorePatterns: isFullSuite ? [] : ["\\.full\\.test\\.ts$"],
  globalSetup: "<rootDir>/test/support/global-setup.ts",
  globalTeardown: "<rootDir>/test/support/global-teardown.ts",
  // The MongoDB driver imports `os` dynamically, which jest's sandbox refuses.
  transform: { "\\.ts$": swc, "/mongodb/lib/runtime_adapters\\.js$": swc },
  transformIgnorePatterns: ["/node_modules/(?!mongodb/lib/runtime_adapters)"],
  // Sources name the files they import as Node will see them, with .js.
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  testEnvironment: "node",
  testSequencer: "<rootDir>/test/support/in-good-order.mjs",
  testTimeout: 30_000,
  // Tests mostly wait, so every core has room for a worker. More than that, and those under attack come too late.
  maxWorkers: "100%",
};
