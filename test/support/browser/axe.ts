import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** What keeps people from using a page, each with where it is; nothing where all is well. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  // The policy of the page lets no script in but its own: this one comes by the debugger.
  const violations = await page.evaluate<AxeResults["violations"]>(
    `${axe}; axe.run(document).then(({ violations }) => violations)`,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target }) => `${id}: ${help} at ${target.join(" ")}`),
  );
}
