import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  asMarkdown,
  asText,
  type Column,
  createTable,
  formatSpread,
  spreadOf,
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

function replaceSection(text: string, section: Section): string {
  const start = `<!-- bench:${section.name}:start -->`;
  const end = `<!-- bench:${section.name}:end -->`;
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`${page} lacks the markers ${start} and ${end}`);
  }
  return `${text.slice(0, from)}${start}\n\n${toMarkdown(section)}\n\n${text.slice(to)}`;
}

function toMarkdown({ table, pageTables = [table], picture, notes }: Section): string {
  const image = picture && `![${picture.altText}](${pictureFolder}/${picture.file})`;
  return [image, ...pageTables.map(asMarkdown), formatList(notes)].filter(Boolean).join("\n\n");
}

function formatList(notes: readonly string[]): string {
  return notes.map((note) => `- ${note}`).join("\n");
}

/** The results and goals of one suite. */
export interface SuiteResult {
  readonly section: Section;
  readonly goals: readonly Goal[];
}

/** A performance goal and its measurements. */
export interface Goal {
  readonly metric: string;
  /** The goal as it is printed. */
  readonly condition: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** One value per round, `NaN` if it could not be measured. */
  readonly values: readonly number[];
  readonly digits?: number;
}

/** `near` means missed by less than the spread between rounds. */
type Verdict = "met" | "near" | "missed" | "unknown";

export function evaluateGoal({ limit, values }: Goal): Verdict {
  const { median, low, high } = spreadOf(values);
  if (Number.isNaN(median)) {
    return "unknown";
  }
  const [isMet, isNear] =
    "atMost" in limit
      ? [median <= limit.atMost, low <= limit.atMost]
      : [median >= limit.atLeast, high >= limit.atLeast];
  if (isMet) {
    return "met";
  }
  return isNear ? "near" : "missed";
}

const verdictTexts: Record<Verdict, string> = {
  met: "✓",
  near: "✗, within the spread",
  missed: "✗",
  unknown: "not measured",
};

const goalColumns: readonly Column<Goal>[] = [
  { title: "Metric", isText: true, text: ({ metric }) => metric },
  { title: "Goal", isText: true, text: ({ condition }) => condition },
  { title: "Measured", text: ({ values, digits = 2 }) => formatSpread(spreadOf(values), digits) },
  { title: "Met", isText: true, text: (goal) => verdictTexts[evaluateGoal(goal)] },
];

/** Renders the goals with their verdicts. */
export function goalsToText(goals: readonly Goal[]): string {
  const table = asText(createTable(goalColumns, goals));
  return `\ngoals\n\n${table}\n\n- Median of the rounds (lowest–highest). Ratios compare CPU time per request within one round unless stated otherwise.\n`;
}
