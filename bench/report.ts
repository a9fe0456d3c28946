import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Result } from "./results.js";
import { asMarkdown, asText } from "./table.js";

const page = fileURLToPath(new URL("../docs/performance.md", import.meta.url));
const start = "<!-- bench:start -->";
const end = "<!-- bench:end -->";

/** What a run of the benchmark found out, and where. */
export interface Report {
  readonly results: readonly Result[];
  /** Sentences about the run, the machine first. */
  readonly facts: readonly string[];
}

export function toText({ results, facts }: Report): string {
  return `\n${asText(results)}\n\n${facts.map((fact) => `- ${fact}`).join("\n")}\n`;
}

/** Puts the report into the page between its marks. */
export async function writePage({ results, facts }: Report): Promise<void> {
  const text = await readFile(page, "utf8");
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`${page} has lost the marks ${start} and ${end}`);
  }
  const list = facts.map((fact) => `- ${fact}`).join("\n");
  const report = `${start}\n\n${asMarkdown(results)}\n\n${list}\n\n${end}`;
  await writeFile(page, text.slice(0, from) + report + text.slice(to + end.length));
}
