import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { asMarkdown, asText, type Table } from "./table.js";

const page = fileURLToPath(new URL("../docs/performance.md", import.meta.url));

/** What one part of the benchmark found out, and where. */
export interface Section {
  /** Names the marks in the page that it goes between. */
  readonly name: string;
  readonly table: Table;
  /** Sentences about how it was measured. */
  readonly facts: readonly string[];
}

export function toText(sections: readonly Section[]): string {
  return sections
    .map(({ name, table, facts }) => `\n${name}\n\n${asText(table)}\n\n${listOf(facts)}\n`)
    .join("\n");
}

/** Puts each section into the page between its marks. */
export async function writePage(sections: readonly Section[]): Promise<void> {
  const text = await readFile(page, "utf8");
  await writeFile(page, sections.reduce(withSection, text));
}

function withSection(text: string, { name, table, facts }: Section): string {
  const start = `<!-- bench:${name}:start -->`;
  const end = `<!-- bench:${name}:end -->`;
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`${page} has lost the marks ${start} and ${end}`);
  }
  const report = `${start}\n\n${asMarkdown(table)}\n\n${listOf(facts)}\n\n`;
  return text.slice(0, from) + report + text.slice(to);
}

function listOf(facts: readonly string[]): string {
  return facts.map((fact) => `- ${fact}`).join("\n");
}
