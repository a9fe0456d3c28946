import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import type { Rule } from "./contract.js";

/** The comment of a declaration, with each paragraph on one line. */
export function getComment(desc: Exclude<AnyDesc, DescFile>): string {
  const comment = getComments(desc).leading;
  if (!comment) {
    throw new Error(`${desc} has no comment`);
  }
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, " "))
    .join("\n\n");
}

/** Splits off the first sentence, without its full stop. */
export function splitSummary(text: string): [summary: string, rest: string] {
  const end = text.search(/\.(\s|$)/);
  return [text.slice(0, end), text.slice(end + 1).trim()];
}

/**
 * Describes rules by their error messages, if these describe the value: "must be one line".
 * Other messages name a mistake and its fix. Comments describe those rules.
 */
export function describeRules(rules: readonly Rule[]): string[] {
  return rules
    .filter(({ message }) => message.startsWith("must "))
    .map(({ message }) => `M${message.slice(1)}.`);
}

export function paragraphs(...texts: readonly string[]): string | undefined {
  return texts.filter((text) => text !== "").join("\n\n") || undefined;
}

export function formatList(words: readonly string[], type: "conjunction" | "disjunction"): string {
  return new Intl.ListFormat("en", { type }).format(words);
}

interface Limits {
  readonly gt?: number | string;
  readonly gte?: number | string;
  readonly lt?: number | string;
  readonly lte?: number | string;
}

/** Describes the bounds of a number or duration. */
export function describeLimits({ gt, gte, lt, lte }: Limits): string {
  const limits = Object.entries({
    "more than": gt,
    "at least": gte,
    "less than": lt,
    "at most": lte,
  }).flatMap(([words, limit]) => (limit === undefined ? [] : `${words} ${limit}`));
  return limits.length > 0 ? `Must be ${formatList(limits, "conjunction")}.` : "";
}
