/** @type {import("jest").Config} */
export default {
  roots: ["<rootDir>/test"],
  transform: {
    "\\.ts$": ["@swc/jest", { jsc: { parser: { syntax: "typescript" }, target: "es2023" } }],
  },
  // Sources name the files they import as Node will see them, with .js.
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  testEnvironment: "node",
  testTimeout: 30_000,
};
