import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { asMarkdown, asText, type Table } from "./table.js";

const page = fileURLToPath(new URL("../docs/performance.md", import.meta.url));
const pictureFolder = "images";

/** What one part of the benchmark found out, and where. */
export interface Section {
  /** Names the marks in the page that it goes between. */
  readonly name: string;
  readonly table: Table;
  readonly picture?: Picture;
  /** Sentences about how it was measured. */
  readonly facts: readonly string[];
}

export interface Picture {
  readonly file: string;
  /** For those who do not see it. */
  readonly words: string;
  readonly svg: string;
}

export function toText(sections: readonly Section[]): string {
  return sections
    .map(({ name, table, facts }) => `\n${name}\n\n${asText(table)}\n\n${listOf(facts)}\n`)
    .join("\n");
}

/** Puts each section into the page between its marks, and its picture beside the page. */
export async function writePage(sections: readonly Section[]): Promise<void> {
  const text = await readFile(page, "utf8");
  await writeFile(page, sections.reduce(withSection, text));
  const folder = new URL(`../docs/${pictureFolder}/`, import.meta.url);
  await mkdir(folder, { recursive: true });
  for (const { picture } of sections) {
    if (picture) {
      await writeFile(new URL(picture.file, folder), picture.svg);
    }
  }
}

function withSection(text: string, section: Section): string {
  const start = `<!-- bench:${section.name}:start -->`;
  const end = `<!-- bench:${section.name}:end -->`;
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`${page} has lost the marks ${start} and ${end}`);
  }
  return `${text.slice(0, from)}${start}\n\n${toMarkdown(section)}\n\n${text.slice(to)}`;
}

function toMarkdown({ table, picture, facts }: Section): string {
  const image = picture && `![${picture.words}](${pictureFolder}/${picture.file})`;
  return [image, asMarkdown(table), listOf(facts)].filter(Boolean).join("\n\n");
}

function listOf(facts: readonly string[]): string {
  return facts.map((fact) => `- ${fact}`).join("\n");
}
