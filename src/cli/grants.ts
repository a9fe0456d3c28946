import { readFile } from "node:fs/promises";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { type AccessRule, AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import { CommandError, fileReason, latchkey } from "./errors.js";
import { collect } from "./option-values.js";
import { fileOption } from "./options.js";
import type { Display } from "./output.js";
import { readStdin } from "./prompt.js";
import { type Column, formatTable } from "./table.js";

interface GrantFlags {
  readonly permission?: string[];
  readonly rules?: string;
}

interface Grants {
  readonly permissions: string[];
  readonly rules: AccessRule[];
}

/** Adds the options for grants. `permission` describes the one that grants a permission. */
export function grantOptions(command: Command, permission: string): Command {
  return command
    .option("--permission <name>", `${permission}; may be repeated`, collect)
    .addOption(fileOption("--rules <file>", "file with access rules as a JSON list, - for stdin"));
}

/** Reads the grants of a new application or session. It needs at least one. */
export async function readGrants({ permission, rules }: GrantFlags): Promise<Grants> {
  return requireGrants({
    permissions: permission ?? [],
    rules: rules === undefined ? [] : await readRules(rules),
  });
}

export function requireGrants(grants: Grants): Grants {
  if (grants.permissions.length === 0 && grants.rules.length === 0) {
    throw new CommandError(
      "Pass --permission or --rules.",
      "usage",
      `List the known permissions with ${latchkey("permissions")}.`,
    );
  }
  return grants;
}

/** Reads access rules as JSON, in the format of the API, from a file or from stdin (`-`). */
export async function readRules(path: string): Promise<AccessRule[]> {
  const source = path === "-" ? "stdin" : path;
  const content = path === "-" ? await readStdin() : await readText(path);
  const list = parseList(content, source);
  return list.map((rule, index) => {
    try {
      return fromJson(AccessRuleSchema, rule);
    } catch (error) {
      const { message } = error as Error;
      const reason = message.replace(/^cannot decode message \S+ from JSON: /, "");
      throw new CommandError(`${source}: rules[${index}]: ${reason}`, "usage");
    }
  });
}

function readText(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: Error) => {
    throw new CommandError(`--rules ${path}: cannot read the file: ${fileReason(error)}`);
  });
}

/** Accepts a list, or an object with `rules`, such as the JSON of an application. */
function parseList(content: string, source: string): JsonValue[] {
  try {
    const value = JSON.parse(content);
    const list = Array.isArray(value) ? value : value.rules;
    if (Array.isArray(list)) {
      return list;
    }
  } catch (error) {
    throw new CommandError(`${source} is not JSON: ${(error as Error).message}`, "usage");
  }
  throw new CommandError(`${source} must contain a JSON list of rules.`, "usage");
}

const ruleColumns: readonly Column<AccessRule>[] = [
  { title: "PRIORITY", text: ({ priority }) => String(priority) },
  { title: "TRANSFORM", text: ({ transform }) => transform },
  { title: "TOKENS", text: formatTokens, shrinkTo: 12 },
  { title: "PERMISSIONS", text: ({ permissions }) => permissions.join(" "), shrinkTo: 12 },
  {
    title: "DESCRIPTION",
    text: ({ description = "" }) => description,
    shrinkTo: 12,
    optional: true,
  },
];

function formatTokens({ container, conditions }: AccessRule): string {
  const clauses = conditions.map(({ attribute, operator, value }) =>
    operator === "equals" ? `${attribute} = ${value}` : `${attribute} ${operator} ${value}`,
  );
  return container ?? (clauses.join(" and ") || "all");
}

/** Rules in order of priority. */
export function formatRules(rules: readonly AccessRule[], display: Display): string {
  const byPriority = rules.toSorted((one, other) => one.priority - other.priority);
  return rules.length > 0 ? `\n${formatTable(ruleColumns, byPriority, display)}` : "";
}
