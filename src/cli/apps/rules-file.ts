import { readFile } from "node:fs/promises";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type AccessRule, AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { CommandFailure } from "../errors.js";
import { readStdin } from "../prompt.js";

/** Reads a list of access rules, as JSON in the words of the API, from a file or, for `-`, from stdin. */
export async function readRules(path: string): Promise<AccessRule[]> {
  const place = path === "-" ? "stdin" : path;
  const content = path === "-" ? await readStdin() : await contentOf(path);
  const list = listIn(content, place);
  return list.map((rule, index) => {
    try {
      return fromJson(AccessRuleSchema, rule);
    } catch (error) {
      const { message } = error as Error;
      const reason = message.replace(/^cannot decode message \S+ from JSON: /, "");
      throw new CommandFailure(`${place}: rules[${index}]: ${reason}`, "usage");
    }
  });
}

function contentOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: Error) => {
    throw new CommandFailure(`The rules cannot be read: ${error.message}`);
  });
}

/** A list, or what has one under `rules`, as an application that was shown has. */
function listIn(content: string, place: string): JsonValue[] {
  try {
    const value = JSON.parse(content);
    const list = Array.isArray(value) ? value : value.rules;
    if (Array.isArray(list)) {
      return list;
    }
  } catch (error) {
    throw new CommandFailure(`${place} is not JSON: ${(error as Error).message}`, "usage");
  }
  throw new CommandFailure(`${place} must hold a list of rules, as JSON.`, "usage");
}
