import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Measured, Verdict } from "../goals.js";
import {
  asMarkdown,
  asText,
  type Column,
  createTable,
  formatEstimate,
  type Table,
} from "./table.js";

const page = fileURLToPath(new URL("../../docs/explanation/performance.md", import.meta.url));
/** Relative to the page. */
const pictureFolder = "../images";

/** The results of one suite. */
interface Section {
  /** Also the name of its markers in the page. */
  readonly name: string;
  /** All results, for the console. */
  readonly table: Table;
  readonly isConsoleOnly?: boolean;
  /** Tables for the page instead of the full one. */
  readonly pageTables?: readonly Table[];
  readonly picture?: Picture;
  /** How it was measured, in sentences. */
  readonly notes: readonly string[];
}

interface Picture {
  readonly file: string;
  readonly altText: string;
  readonly svg: string;
}

export function toText(sections: readonly Section[]): string {
  return sections
    .map(({ name, table, notes }) => `\n${name}\n\n${asText(table)}\n\n${formatList(notes)}\n`)
    .join("\n");
}

/** Writes each section between its markers in the page, and its picture to the image folder. */
export async function writePage(all: readonly Section[]): Promise<void> {
  const sections = all.filter(({ isConsoleOnly }) => !isConsoleOnly);
  const text = await readFile(page, "utf8");
  await writeFile(page, sections.reduce(replaceSection, text));
  const folder = new URL(`${pictureFolder}/`, pathToFileURL(page));
  await mkdir(folder, { recursive: true });
  for (const { picture } of sections) {
    if (picture) {
      await writeFile(new URL(picture.file, folder), picture.svg);
    }
  }
}

/** Fails before a long run instead of after it. */
export async function assertPageHas(name: string): Promise<void> {
  findSection(await readFile(page, "utf8"), name);
}

function replaceSection(text: string, section: Section): string {
  const { from, to } = findSection(text, section.name);
  return `${text.slice(0, from)}\n\n${toMarkdown(section)}\n\n${text.slice(to)}`;
}

/** Finds the text between the markers of a section. */
function findSection(text: string, name: string): { readonly from: number; readonly to: number } {
  const start = `<!-- bench:${name}:start -->`;
  const end = `<!-- bench:${name}:end -->`;
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`${page} lacks the markers ${start} and ${end}`);
  }
  return { from: from + start.length, to };
}

function toMarkdown({ table, pageTables = [table], picture, notes }: Section): string {
  const image = picture && `![${picture.altText}](${pictureFolder}/${picture.file})`;
  return [image, ...pageTables.map(asMarkdown), formatList(notes)].filter(Boolean).join("\n\n");
}

function formatList(notes: readonly string[]): string {
  return notes.map((note) => `- ${note}`).join("\n");
}

/** The results of one suite. */
export interface SuiteResult {
  readonly section: Section;
  readonly measured?: Measured;
}

const goalColumns: readonly Column<Verdict>[] = [
  { title: "Metric", isText: true, text: ({ metric }) => metric },
  { title: "Goal", isText: true, text: formatGoal },
  {
    title: "Lowest (median)",
    text: ({ value, digits = 2 }) => (value ? formatEstimate(value, digits) : "not measured"),
  },
  { title: "Met", isText: true, text: ({ isMet }) => formatMet(isMet) },
];

function formatGoal({ limit, unit }: Verdict): string {
  return "atMost" in limit ? `≤ ${limit.atMost} ${unit}` : `≥ ${limit.atLeast} ${unit}`;
}

function formatMet(isMet: boolean | undefined): string {
  if (isMet === undefined) {
    return "";
  }
  return isMet ? "yes" : "no";
}

/** The page has the goals of several versions of Node.js. */
export const goalSectionName = `goals-${process.versions.node.split(".")[0]}`;

export function createGoalSection(verdicts: readonly Verdict[]): Section {
  return {
    name: goalSectionName,
    table: createTable(goalColumns, verdicts),
    notes: [
      `Node ${process.version}. Ratios compare the lowest values of both sides, in CPU time per request unless stated otherwise.`,
    ],
  };
}
