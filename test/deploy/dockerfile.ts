import { readFileSync } from "node:fs";

export interface Instruction {
  readonly name: string;
  /** The flags before its arguments, such as `--from=build`. */
  readonly flags: Readonly<Record<string, string>>;
  readonly text: string;
}

interface Stage {
  readonly image: string;
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** The stages of the Dockerfile, with the defaults of its arguments filled in. */
export function readDockerfile(): readonly Stage[] {
  const lines = readFileSync("Dockerfile", "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const defaults = new Map<string, string>();
  const stages: { image: string; name: string; instructions: Instruction[] }[] = [];
  for (const { name, flags, text } of lines.map(parseLine)) {
    if (name === "ARG") {
      const [argument = "", value = ""] = text.split("=");
      defaults.set(argument, value);
    } else if (name === "FROM") {
      const [image = "", stage = ""] = text.split(/ as /i);
      const filled = image.replace(/\$\{(\w+)\}/, (_, argument) => defaults.get(argument) ?? "");
      stages.push({ image: filled, name: stage, instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ name, flags, text });
    }
  }
  return stages;
}

function parseLine(line: string): Instruction {
  const [, name = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
  const flags: Record<string, string> = {};
  const text = rest.replace(/^(--(\w[\w-]*)=(\S+)\s+)+/, (all) => {
    for (const [, flag = "", value = ""] of all.matchAll(/--([\w-]+)=(\S+)/g)) {
      flags[flag] = value;
    }
    return "";
  });
  return { name, flags, text: text.trim() };
}
