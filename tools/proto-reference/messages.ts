import { type DescField, type DescMessage, type DescService, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { Contract, FieldRules, RepeatedRules, StringRules } from "../contract/contract.js";
import { exampleIn } from "../contract/examples.js";
import { commentOf, limitsOf, listOf, sentencesOf } from "../contract/prose.js";
import { type Block, codeOf, heading, linkTo, prose } from "./blocks.js";

/** Describes the request and response messages of all methods, sorted by name. */
export function describeMessages(contract: Contract, services: readonly DescService[]): Block[] {
  const methods = services.flatMap((service) => service.methods);
  const requests = reachable(methods.map(({ input }) => input));
  const responses = reachable(methods.map(({ output }) => output));
  return [...new Set([...requests, ...responses])]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((message) => describeMessage(contract, message, requests.has(message)));
}

function describeMessage(contract: Contract, message: DescMessage, isRequest: boolean): Block[] {
  return [
    heading(3, message.name),
    ...prose(commentOf(message)),
    ...prose(sentencesOf(contract.messageRules(message)).join(" ")),
    ...(message.fields.length > 0 ? [fieldsOf(contract, message, isRequest)] : []),
  ];
}

function fieldsOf(contract: Contract, { fields }: DescMessage, isRequest: boolean): Block {
  return {
    kind: "table",
    head: ["Field", "No.", "Type", "Description", "Rules", "Example"],
    rows: fields.map((field) => {
      const rules = contract.fieldRules(field);
      const presence = rules.required ? [isRequest ? "Required." : "Always present."] : [];
      const example = exampleIn(rules);
      return [
        codeOf(field.name),
        String(field.number),
        typeOf(field),
        commentOf(field).replaceAll("\n\n", " "),
        [...presence, ...rulesInWords(contract, field)].join(" "),
        example === undefined ? "" : codeOf(String(example)),
      ];
    }),
  };
}

function typeOf(field: DescField): string {
  const label = field.fieldKind === "list" ? "repeated " : presenceOf(field);
  if (field.message) {
    return label + referTo(field.message);
  }
  if (field.scalar === undefined) {
    throw new Error(`${field} has a type that this plugin does not support`);
  }
  return label + codeOf(ScalarType[field.scalar].toLowerCase());
}

/** Message fields always have explicit presence, so only other fields are marked. */
function presenceOf({ message, presence }: DescField): string {
  return !message && presence === FeatureSet_FieldPresence.EXPLICIT ? "optional " : "";
}

/** Names a message, with a link if it is part of the contract. */
export function referTo(message: DescMessage): string {
  return isOurs(message) ? linkTo(message.name) : codeOf(message.typeName);
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
export function rulesInWords(contract: Contract, field: DescField): string[] {
  const rules = contract.fieldRules(field);
  const header = contract.header(field);
  const item = valueRules(contract, rules.repeated?.items ?? {});
  return [
    ...itemRules(rules.repeated ?? {}),
    ...valueRules(contract, rules),
    ...(item.length > 0 ? [`Each: ${item.join(" ")}`] : []),
    header ? `Over REST, sent in the ${codeOf(header)} header, in double quotes.` : "",
  ].filter((text) => text !== "");
}

function valueRules(
  contract: Contract,
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
    ...sentencesOf([...contract.predefinedRules(string), ...cel]),
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
