import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  asMarkdown,
  asText,
  type Column,
  spreadOf,
  type Table,
  tableOf,
  withRange,
} from "./table.js";

const page = fileURLToPath(new URL("../../docs/explanation/performance.md", import.meta.url));
/** Relative to the page. */
const pictureFolder = "../images";

/** The results of one part of the benchmark. */
interface Section {
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

interface Picture {
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

/** The results of one part of the benchmark, and the goals that they decide. */
export interface Findings {
  readonly section: Section;
  readonly goals: readonly Goal[];
}

/** A performance goal, and what was measured for it. */
export interface Goal {
  readonly path: string;
  /** The goal as shown to people. */
  readonly promise: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** One per round, `NaN` if it could not be measured. */
  readonly figures: readonly number[];
  readonly digits?: number;
}

/** `near`: missed by less than the rounds differ, so another run may meet it. */
type Verdict = "met" | "near" | "missed" | "unknown";

export function verdictOf({ limit, figures }: Goal): Verdict {
  const { median, low, high } = spreadOf(figures);
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

const words: Record<Verdict, string> = {
  met: "✓",
  near: "✗, within the spread",
  missed: "✗",
  unknown: "not measured",
};

const goalColumns: readonly Column<Goal>[] = [
  { title: "Path", isText: true, text: ({ path }) => path },
  { title: "Goal", isText: true, text: ({ promise }) => promise },
  { title: "Measured", text: ({ figures, digits = 2 }) => withRange(spreadOf(figures), digits) },
  { title: "Met", isText: true, text: (goal) => words[verdictOf(goal)] },
];

/** The goals with a check mark for each that is met. */
export function goalsToText(goals: readonly Goal[]): string {
  const table = asText(tableOf(goalColumns, goals));
  return `\ngoals\n\n${table}\n\n- Median of the rounds (lowest–highest). Ratios compare CPU time per request within one round unless stated otherwise.\n`;
}
