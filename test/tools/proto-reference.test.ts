import { readFileSync } from "node:fs";
import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import {
  field as fieldRules,
  message as messageRules,
  predefined,
} from "../../gen/buf/validate/validate_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import {
  access,
  errors,
  permissions as permissionsOption,
  replayable,
} from "../../gen/latchkey/v1/options_pb.js";
import { file_latchkey_v1_rules } from "../../gen/latchkey/v1/rules_pb.js";
import { services } from "../../src/contract/methods.js";
import { problemCatalogue } from "../../src/contract/problems.js";
import { rpcPath } from "../support/api/rpc-path.js";

const markdown = readFileSync("gen/proto.md", "utf8");
const methods = services.flatMap((service) => service.methods);
const messages = [...findReachable(methods.flatMap(({ input, output }) => [input, output]))];

/** Returns the text between a heading and the next one. */
function getSection(name: string): string {
  const [, section, duplicate] = markdown.split(new RegExp(`^#+ ${name}$`, "m"));
  expect({ name, isUnique: section !== undefined && duplicate === undefined }).toEqual({
    name,
    isUnique: true,
  });
  return section?.split(/^#/m)[0] ?? "";
}

describe("the proto reference", () => {
  it.each(services)("lists the permissions of $name", (service) => {
    const permissions = service.methods.map((method) => getOption(method, access).permission);
    for (const permission of permissions.filter(Boolean)) {
      const declaring = services.find((service) =>
        getOption(service, permissionsOption).some(({ name }) => name === permission),
      );
      expect(getSection((declaring ?? service).name)).toContain(`- \`${permission}\`: `);
    }
  });

  it.each(methods)("describes $name completely", (method) => {
    const section = getSection(method.name);
    expect(section).toContain(`\`${rpcPath(method)}\``);
    const { permission } = getOption(method, access);
    expect(section).toContain(permission ? `the permission \`${permission}\`` : "");
    expect(section).toMatch(/^(Requires .*|Any valid key is accepted|Needs no key)\.$/m);
    expect(section.includes("Idempotency-Key")).toBe(getOption(method, replayable));
    for (const code of getOption(method, errors)) {
      expect(section).toContain(`\`${code}\``);
    }
    const path = hasOption(method, http) ? getOption(method, http).pattern.value : "none";
    expect(/^\| REST \| (?:`[A-Z]+ )?([^`|]*?)[` ]/m.exec(section)?.[1]).toBe(path);
    expect(/^\| Request \| a stream of/m.test(section)).toBe(
      method.methodKind === "bidi_streaming",
    );
    expect(/^\| Response \| a stream of/m.test(section)).toBe(method.methodKind !== "unary");
    const shown = [method.input, method.output].filter(({ fields }) => fields.length > 0);
    expect(section.match(/^```json$/gm) ?? []).toHaveLength(shown.length);
  });

  it("names the oneof of a field, and of no other", () => {
    for (const { name, fields } of messages) {
      for (const field of fields) {
        const [row] = getSection(name)
          .split("\n")
          .filter((line) => line.startsWith(`| \`${field.name}\` |`));
        expect(/\| oneof `(\w+)`/.exec(row ?? "")?.[1]).toBe(field.oneof?.name);
      }
    }
  });

  it.each(messages)("lists every field of $name", (message) => {
    const section = getSection(message.name);
    for (const field of message.fields) {
      expect(section).toContain(`| \`${field.name}\` | ${field.number} | ${renderType(field)}`);
    }
  });

  it("describes validation rules in sentences", () => {
    const [name, , permissions] = getRows("CreateApplicationRequest");
    expect(name).toContain("<br>Required. At most 200 characters. Must be one line of text");
    expect(permissions).toContain(
      "<br>At most 50 items. No duplicates. Each: At most 100 characters.",
    );
    expect(getRows("AccessRuleCondition")[1]).toContain("One of `starts_with` or `equals`.");
    expect(getRows("ListSessionsRequest")[2]).toContain("Must be at least 1 and at most 100.");
  });

  it("lists the verbs and paths of methods that have several", () => {
    expect(getSection("Methods")).toContain(
      "| `PUT /applications/{id}`, `PATCH /applications/{id}` |",
    );
  });

  it("names the codes of the rules of requests", () => {
    const requests = [...findReachable(methods.map(({ input }) => input))];
    const rulesOf = (field: DescField) => {
      const { cel, type } = getOption(field, fieldRules);
      return [...cel, ...((type.case === "repeated" && type.value.items?.cel) || [])];
    };
    const rules = [
      ...requests.flatMap((message) => getOption(message, messageRules).cel),
      ...requests.flatMap(({ fields }) => fields.flatMap(rulesOf)),
      ...file_latchkey_v1_rules.extensions.flatMap((rule) => getOption(rule, predefined).cel),
    ];
    const ids = rules.map(({ id }) => id);
    expect(ids).toEqual(
      expect.arrayContaining([
        "update_application.grants",
        "application_rule.conditions",
        "string.event_kind",
      ]),
    );
    expect(ids.filter((id) => !markdown.includes(`(\`${id}\`).`))).toEqual([]);
  });

  it("describes every error of the methods", () => {
    for (const code of methods.flatMap((method) => getOption(method, errors))) {
      const { status } = problemCatalogue[code as keyof typeof problemCatalogue];
      expect(getSection("Errors")).toMatch(
        new RegExp(`^\\| \\[\`${code}\`\\]\\(\\S+#${code}\\) \\| [A-Z_]+ \\| ${status} `, "m"),
      );
    }
  });

  it("has no broken links to its headings, which are unique", () => {
    const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
      text.toLowerCase().replaceAll(" ", "-"),
    );
    expect(new Set(headings).size).toBe(headings.length);
    const targets = [...markdown.matchAll(/\]\(#([^)]*)\)/g)].map(([, target]) => target);
    expect(headings).toEqual(expect.arrayContaining(targets));
  });
});

function getRows(name: string): string[] {
  return getSection(name)
    .split("\n")
    .filter((line) => line.startsWith("| `"));
}

/** Renders the start of a field's type: `repeated` for a list, and the link to a message. */
function renderType({ fieldKind, message }: DescField): string {
  const label = fieldKind === "list" ? "repeated " : "";
  return message && isLatchkeyType(message)
    ? `${label}[${message.name}](#${message.name.toLowerCase()})`
    : label;
}

function isLatchkeyType({ typeName }: DescMessage): boolean {
  return typeName.startsWith("latchkey.");
}

function findReachable(from: DescMessage[], found = new Set<DescMessage>()): Set<DescMessage> {
  for (const message of from.filter((message) => isLatchkeyType(message) && !found.has(message))) {
    found.add(message);
    findReachable(
      message.fields.flatMap((field) => field.message ?? []),
      found,
    );
  }
  return found;
}
