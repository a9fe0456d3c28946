import type { DescField } from "@bufbuild/protobuf";
import type { Facts } from "../contract/facts.js";
import { limitsOf } from "../contract/limits.js";
import { listOf, sentencesOf } from "../contract/prose.js";
import type { FieldRules, RepeatedRules, StringRules } from "../contract/rules.js";
import { codeOf } from "./blocks.js";

/** Describes the rules of a field in sentences. */
export function rulesInWords(facts: Facts, field: DescField): string[] {
  const rules = facts.fieldRules(field);
  const header = facts.header(field);
  const item = valueRules(facts, rules.repeated?.items ?? {});
  return [
    ...itemRules(rules.repeated ?? {}),
    ...valueRules(facts, rules),
    ...(item.length > 0 ? [`Each: ${item.join(" ")}`] : []),
    header ? `Over REST, sent in the ${codeOf(header)} header, in double quotes.` : "",
  ].filter((text) => text !== "");
}

function valueRules(
  facts: Facts,
  { cel = [], string = {}, int32 = {}, duration = {}, field_mask = {} }: FieldRules,
): string[] {
  const choices = string.in?.map(codeOf) ?? [];
  const paths = field_mask.in?.map(codeOf) ?? [];
  return [
    string.uuid ? "A UUID." : "",
    choices.length > 0 ? `One of ${listOf(choices, "disjunction")}.` : "",
    paths.length > 0 ? `May contain ${listOf(paths, "conjunction")}.` : "",
    lengthOf(string),
    string.pattern ? `Matches ${codeOf(string.pattern)}.` : "",
    limitsOf(int32),
    limitsOf(duration),
    ...sentencesOf([...facts.predefinedRules(string), ...cel]),
  ].filter((text) => text !== "");
}

function lengthOf({ min_len, max_len }: StringRules): string {
  return counted(min_len, max_len, "character");
}

function itemRules({ min_items, max_items, unique }: RepeatedRules): string[] {
  return [counted(min_items, max_items, "item"), unique ? "No duplicates." : ""];
}

function counted(min: string | undefined, max: string | undefined, unit: string): string {
  if (min === undefined && max === undefined) {
    return "";
  }
  if (min === undefined) {
    return `At most ${max} ${unit}s.`;
  }
  return max === undefined ? `At least ${min} ${unit}s.` : `${min} to ${max} ${unit}s.`;
}
