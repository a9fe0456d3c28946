import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { asMarkdown, asText, type Table } from "./table.js";

const page = fileURLToPath(new URL("../docs/explanation/performance.md", import.meta.url));
/** Relative to the page. */
const pictureFolder = "../images";

/** The results of one part of the benchmark. */
export interface Section {
  /** Names the markers in the page that enclose it. */
  readonly name: string;
  /** Everything that was measured, for the terminal. */
  readonly table: Table;
  /** Printed only, not written to the page. */
  readonly isPrintedOnly?: boolean;
  /** Shorter tables for the page, if the full one is too long for it. */
  readonly pageTables?: readonly Table[];
  readonly picture?: Picture;
  /** Sentences about how it was measured. */
  readonly facts: readonly string[];
}

export interface Picture {
  readonly file: string;
  readonly altText: string;
  readonly svg: string;
}

export function toText(sections: readonly Section[]): string {
  return sections
    .map(({ name, table, facts }) => `\n${name}\n\n${asText(table)}\n\n${listOf(facts)}\n`)
    .join("\n");
}

/** Writes each section into the page between its markers, and its picture into the folder of images. */
export async function writePage(all: readonly Section[]): Promise<void> {
  const sections = all.filter(({ isPrintedOnly }) => !isPrintedOnly);
  const text = await readFile(page, "utf8");
  await writeFile(page, sections.reduce(withSection, text));
  const folder = new URL(`${pictureFolder}/`, pathToFileURL(page));
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
    throw new Error(`${page} lacks the markers ${start} and ${end}`);
  }
  return `${text.slice(0, from)}${start}\n\n${toMarkdown(section)}\n\n${text.slice(to)}`;
}

function toMarkdown({ table, pageTables = [table], picture, facts }: Section): string {
  const image = picture && `![${picture.altText}](${pictureFolder}/${picture.file})`;
  return [image, ...pageTables.map(asMarkdown), listOf(facts)].filter(Boolean).join("\n\n");
}

function listOf(facts: readonly string[]): string {
  return facts.map((fact) => `- ${fact}`).join("\n");
}
