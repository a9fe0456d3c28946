import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Prints the skipped tests and their reasons after the results. */
export default class SkipReporter {
  #globalConfig;

  constructor(globalConfig) {
    this.#globalConfig = globalConfig;
  }

  onRunComplete(_contexts, results) {
    if (this.#globalConfig.testNamePattern) {
      return;
    }
    const lines = [...skippedTests(results), ...this.#fullOnlySuites()];
    if (lines.length > 0) {
      process.stderr.write(`\nNot tested in this run:\n${lines.map((it) => `  ${it}\n`).join("")}`);
    }
  }

  /** Lists the long suites, but only after a complete quick run. */
  #fullOnlySuites() {
    const { rootDir, testPathPatterns, nonFlagArgs = [] } = this.#globalConfig;
    const isSelection = nonFlagArgs.length > 0 || (testPathPatterns?.patterns ?? []).length > 0;
    if (process.env.TEST_SUITE === "full" || isSelection) {
      return [];
    }
    const files = readdirSync(join(rootDir, "test"), { recursive: true });
    const suites = files.filter((file) => file.endsWith(".full.test.ts"));
    return [
      `${suites.length} long suites (faults, attacks, fuzzing, timing, memory, browser), some clients and stores, and more repetitions: run "npm run test:full"`,
    ];
  }
}

/** The titles of skipped tests, which end with the reason, and their counts. */
function skippedTests({ testResults }) {
  const counts = new Map();
  for (const { testResults: tests } of testResults) {
    for (const { status, ancestorTitles, title } of tests) {
      if (status === "pending") {
        const name = [...ancestorTitles, title].find((it) => it.includes("(not run: ")) ?? title;
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
  }
  return [...counts].map(([name, count]) => `${name}: ${count} ${count === 1 ? "test" : "tests"}`);
}
