import {
  type DescField,
  type DescMessage,
  type DescService,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type {
  Contract,
  FieldRules,
  RepeatedRules,
  Rule,
  StringRules,
} from "../contract/contract.js";
import { findExample } from "../contract/examples.js";
import { describeLimits, formatList, getComment } from "../contract/prose.js";
import { type Block, heading, inlineCode, linkTo, prose } from "./blocks.js";

/** Describes the request and response messages of all methods, sorted by name. */
export function describeMessages(contract: Contract, services: readonly DescService[]): Block[] {
  const methods = services.flatMap((service) => service.methods);
  const requests = reachable(
    methods.map((method) => contract.rawItems(method, "input") ?? method.input),
  );
  const responses = reachable(
    methods.map((method) => contract.rawItems(method, "output") ?? method.output),
  );
  return [...new Set([...requests, ...responses])]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((message) => describeMessage(contract, message, requests.has(message)));
}

function describeMessage(contract: Contract, message: DescMessage, isRequest: boolean): Block[] {
  return [
    heading(3, message.name),
    ...prose(getComment(message)),
    ...(isRequest ? describeMessageRules(contract, message) : []),
    ...(message.fields.length > 0 ? [describeFields(contract, message, isRequest)] : []),
  ];
}

function describeMessageRules(contract: Contract, message: DescMessage): Block[] {
  const items = contract.messageRules(message).map(describeRule);
  return items.length > 0 ? [{ kind: "list", items }] : [];
}

function describeFields(contract: Contract, { fields }: DescMessage, isRequest: boolean): Block {
  return {
    kind: "table",
    head: ["Field", "No.", "Type", "Description"],
    rows: fields.map((field) => {
      const rules = contract.fieldRules(field);
      const presence = rules.required ? [isRequest ? "Required." : "Always present."] : [];
      const example = findExample(rules);
      const lines = [
        getComment(field).replaceAll("\n\n", " "),
        [...presence, ...describeFieldRules(contract, field)].join(" "),
        example === undefined ? "" : `Example: ${inlineCode(formatExample(example))}`,
      ];
      return [
        inlineCode(field.name),
        String(field.number),
        describeType(field),
        lines.filter((line) => line !== "").join("<br>"),
      ];
    }),
  };
}

function formatExample(example: JsonValue): string {
  return typeof example === "object" ? JSON.stringify(example) : String(example);
}

function describeType(field: DescField): string {
  if (field.fieldKind === "map" && field.mapKind === "scalar") {
    return inlineCode(`map<${scalarName(field.mapKey)}, ${scalarName(field.scalar)}>`);
  }
  const label = field.fieldKind === "list" ? "repeated " : describePresence(field);
  if (field.message) {
    return label + referTo(field.message);
  }
  if (field.scalar === undefined) {
    throw new Error(`${field} has a type that this plugin does not support`);
  }
  return label + inlineCode(scalarName(field.scalar));
}

function scalarName(scalar: ScalarType): string {
  return ScalarType[scalar].toLowerCase();
}

/** Message fields always have explicit presence, so only other fields are marked. */
function describePresence({ message, presence, oneof }: DescField): string {
  if (oneof) {
    return `oneof ${inlineCode(oneof.name)} `;
  }
  return !message && presence === FeatureSet_FieldPresence.EXPLICIT ? "optional " : "";
}

/** Names a message, with a link if it is part of the contract. */
export function referTo(message: DescMessage): string {
  return isOurs(message) ? linkTo(message.name) : inlineCode(message.typeName);
}

function isOurs({ file }: DescMessage): boolean {
  return !file.proto.package.startsWith("google.");
}

function reachable(from: readonly DescMessage[]): Set<DescMessage> {
  const found = new Set<DescMessage>();
  const waiting = [...from];
  for (let message = waiting.pop(); message; message = waiting.pop()) {
    if (isOurs(message) && !found.has(message)) {
      found.add(message);
      waiting.push(...message.fields.flatMap((field) => field.message ?? []));
    }
  }
  return found;
}

/** Describes the rules of a field in sentences. */
function describeFieldRules(contract: Contract, field: DescField): string[] {
  const rules = contract.fieldRules(field);
  const header = contract.header(field);
  const { min_pairs, max_pairs, keys, values } = rules.map ?? {};
  const partRules = (label: string, part: FieldRules = {}) => {
    const sentences = valueRules(contract, part);
    return sentences.length > 0 ? [`${label}: ${sentences.join(" ")}`] : [];
  };
  return [
    ...itemRules(rules.repeated ?? {}),
    describeCount(min_pairs, max_pairs, "pair"),
    ...valueRules(contract, rules),
    ...partRules("Each", rules.repeated?.items),
    ...partRules("Keys", keys),
    ...partRules("Values", values),
    header ? `Over REST, sent in the ${inlineCode(header)} header, in double quotes.` : "",
  ].filter((text) => text !== "");
}

function valueRules(
  contract: Contract,
  { cel = [], string = {}, int32 = {}, duration = {}, field_mask = {} }: FieldRules,
): string[] {
  const choices = contract.choices(string)?.map(inlineCode) ?? [];
  const paths = field_mask.in?.map(inlineCode) ?? [];
  return [
    string.uuid ? "A UUID." : "",
    choices.length > 0
      ? `One of ${formatList(choices, "disjunction")}${codeOf(contract.listRule(string))}.`
      : "",
    paths.length > 0 ? `May contain ${formatList(paths, "conjunction")}.` : "",
    describeLength(string),
    string.pattern ? `Matches ${inlineCode(string.pattern)}.` : "",
    describeLimits(int32),
    describeLimits(duration),
    ...[...contract.predefinedRules(string), ...cel].map(describeRule),
  ].filter((text) => text !== "");
}

/** A rule in a sentence, with the code of its violations. */
function describeRule(rule: Rule): string {
  const { message } = rule;
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${codeOf(rule)}.`;
}

function codeOf(rule: Rule | undefined): string {
  return rule ? ` (${inlineCode(rule.id)})` : "";
}

function describeLength({ min_len, max_len }: StringRules): string {
  return describeCount(min_len, max_len, "character");
}

function itemRules({ min_items, max_items, unique }: RepeatedRules): string[] {
  return [describeCount(min_items, max_items, "item"), unique ? "No duplicates." : ""];
}

function describeCount(min: string | undefined, max: string | undefined, unit: string): string {
  if (min === undefined && max === undefined) {
    return "";
  }
  if (min === undefined) {
    return `At most ${max} ${unit}s.`;
  }
  return max === undefined ? `At least ${min} ${unit}s.` : `${min} to ${max} ${unit}s.`;
}
