import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { compileGrants, type Decision, decide } from "../../../src/contract/decisions/decide.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { Grants, RuleRecord } from "../../../src/contract/grants.js";
import { isOwnPermission } from "../../../src/contract/methods.js";
import { ruleOf } from "./grants.js";

const heading = "| # | Grants | Permission | Token | Decision | Why |";

/** The cells of the table rows below the heading. */
function readRows(page: string): string[][] {
  const [, table = ""] = page.split(`${heading}\n|---|---|---|---|---|---|\n`);
  return table
    .trimEnd()
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()));
}

function readExample(cells: string[]) {
  const [before, number, grants, permission, token, expected, why, after, ...rest] = cells;
  if (before !== "" || after !== "" || rest.length > 0 || !why || !/^\d+$/.test(number ?? "")) {
    throw new Error(`not a row of the table: ${cells.join("|")}`);
  }
  return {
    number: Number(number),
    grants: readGrants(JSON.parse(readCode(grants))),
    permission: readCode(permission),
    token: token === "none" ? undefined : readToken(JSON.parse(readCode(token))),
    expected: readCode(expected),
  };
}

function readCode(cell: string | undefined): string {
  const [, code] = /^`([^`]+)`$/.exec(cell ?? "") ?? [];
  if (code === undefined) {
    throw new Error(`not a code cell: ${cell}`);
  }
  return code;
}

/** Fails on unknown field names, which would change the meaning of an example. */
function expectFields(value: object, ...allowed: string[]): void {
  expect(allowed).toEqual(expect.arrayContaining(Object.keys(value)));
}

function readGrants(given: Partial<Grants>): Grants {
  expectFields(given, "permissions", "rules");
  return { permissions: given.permissions ?? [], rules: (given.rules ?? []).map(readRule) };
}

function readRule(given: Partial<RuleRecord>): RuleRecord {
  expectFields(given, "priority", "container", "conditions", "transform", "permissions");
  for (const condition of given.conditions ?? []) {
    expect(Object.keys(condition)).toEqual(["attribute", "operator", "value"]);
  }
  return ruleOf(given);
}

function readToken(given: Token): Token {
  expectFields(given, "id", "container");
  return given;
}

function formatDecision(decision: Decision): string {
  if (!decision.allowed) {
    return `denied ${decision.reason}`;
  }
  const { transform, decidedBy } = decision;
  const grant = "rule" in decidedBy ? `rule ${decidedBy.rule.index}` : "permission";
  return `allowed ${transform} by ${grant}`;
}

describe("the worked examples in docs/explanation/access-decisions.md", () => {
  const rows = readRows(readFileSync("docs/explanation/access-decisions.md", "utf8"));

  it("are numbered", () => {
    expect(rows.length).toBeGreaterThanOrEqual(20);
    expect(rows.map(([, number]) => Number(number))).toEqual(rows.map((_, index) => index + 1));
  });

  it.each(rows.map((row) => [row[1], row] as const))("are correct: %s", (_, row) => {
    const { grants, permission, token, expected } = readExample(row);
    const compiled = compileGrants(grants);
    expect(formatDecision(decide(compiled, permission, token, isOwnPermission(permission)))).toBe(
      expected,
    );
  });
});
