import { countOf, escapeUnprintable } from "../../lib/terminal.js";
import type { Display } from "../output.js";
import { padText, wrapText } from "../text.js";

export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly found: string;
  /** How to fix it. */
  readonly fix?: string;
}

export const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });

export const warn = (check: string, found: string, fix: string): Finding => ({
  check,
  state: "warn",
  found,
  fix,
});

export const fail = (check: string, found: string, fix: string): Finding => ({
  check,
  state: "fail",
  found,
  fix,
});

/** Changes the texts of a finding. */
export function mapTexts(finding: Finding, change: (text: string) => string): Finding {
  const { found, fix } = finding;
  return { ...finding, found: change(found), ...(fix !== undefined && { fix: change(fix) }) };
}

export function formatReport(findings: readonly Finding[], display: Display): string {
  const { good, warn, bad, dim } = display.colors;
  const paint = { ok: good, warn, fail: bad } as const;
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = " ".repeat(4 + 2 + width + 2);
  const wrap = (text: string) =>
    wrapText(escapeUnprintable(text), (display.width ?? Number.POSITIVE_INFINITY) - indent.length);
  const lines = findings.flatMap(({ check, state, found, fix }) => [
    `${paint[state](padText(state, 4))}  ${padText(check, width)}  ${wrap(found).join(`\n${indent}`)}`,
    ...(fix ? wrap(`→ ${fix}`).map((line) => indent + dim(line)) : []),
  ]);
  return `${lines.join("\n")}\n\n${formatSummary(findings)}\n`;
}

function formatSummary(findings: readonly Finding[]): string {
  const count = (state: Finding["state"]) => findings.filter((it) => it.state === state).length;
  return `${count("fail")} failed, ${countOf(count("warn"), "warning")}, ${count("ok")} passed`;
}
