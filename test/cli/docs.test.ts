import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import type { Command } from "commander";
import { exitCodes } from "../../src/cli/errors.js";
import { optionalSettings, optionOfSetting } from "../../src/cli/settings.js";
import { createFullProgram } from "./run-cli.js";

const page = readFileSync("docs/reference/cli.md", "utf8");

/** The commands without subcommands, each with its full name. */
function leafCommands(command: Command, names: readonly string[] = []): [string, Command][] {
  const visible = command.createHelp().visibleCommands(command);
  const subcommands = visible.filter((one) => one.name() !== "help");
  return subcommands.length === 0
    ? [[names.join(" "), command]]
    : subcommands.flatMap((one) => leafCommands(one, [...names, one.name()]));
}

const leaves = leafCommands(createFullProgram());

/** The table row of a command, up to the next row or heading. */
function findSection(name: string): string {
  const [, section = ""] = page.split(`\`latchkey ${name}`);
  return section.split(/\n(?=\| `latchkey |#)/)[0] ?? "";
}

/** Options of several commands, documented once. */
const shared = new Set([
  "--help",
  "--json",
  "--url",
  "--profile",
  "--key-file",
  "--key-header",
  "--timeout",
  "--yes",
  "--limit",
  "--all",
  "--key-only",
  "--output-key",
]);

/** The options of settings, which settings.md describes. */
const settingOptions = new Set(optionalSettings.map(optionOfSetting));

describe("docs/reference/cli.md", () => {
  it.each(leaves)("documents `latchkey %s` and its own options", (name, command) => {
    const section = findSection(name);
    expect(section).not.toBe("");
    const own = command.options.flatMap(({ long }) =>
      long && !shared.has(long) && !settingOptions.has(long) ? [long] : [],
    );
    expect(own.filter((option) => !section.includes(option))).toEqual([]);
  });

  it("documents the shared options", () => {
    const documented = [...shared].filter((option) => page.includes(`\`${option}`));
    expect(documented).toEqual([...shared]);
  });

  it("lists no other command", () => {
    const listed = [...page.matchAll(/^\| `latchkey ([a-z -]+?)(?: [A-Z[<].*?)?`/gm)].map(
      ([, name]) => name,
    );
    expect(listed.sort()).toEqual(leaves.map(([name]) => name).sort());
  });

  it("documents every exit code, and no other", () => {
    const documented = [...page.matchAll(/^\| (\d+) \| \S/gm)].map(([, code]) => Number(code));
    expect(documented).toEqual(Object.values(exitCodes).map(({ code }) => code));
  });
});

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    getOutHelpWidth: () => 80,
    getOutHasColors: () => false,
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

describe("--help", () => {
  it.each(leaves)("fits 80 columns and shows an example for `latchkey %s`", (name, command) => {
    const text = helpOf(command);
    expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(text).toMatch(new RegExp(`Examples?:\\n(.*\\n)*  .*latchkey ${name}`));
  });

  it("lists every option of serve with its variable", () => {
    const [, serve] = leaves.find(([name]) => name === "serve") ?? [];
    const words = helpOf(serve as Command).replaceAll(/\s+/g, " ");
    const missing = optionalSettings.filter(
      (name) => !new RegExp(`${optionOfSetting(name)} <\\w+> [^<]*\\(${name}[,)]`).test(words),
    );
    expect(missing).toEqual([]);
  });

  it("shows examples without passwords, and quotes what a shell would expand", () => {
    for (const [, command] of leaves) {
      const [, examples = ""] = helpOf(command).split(/\nExamples?:\n/);
      expect(examples).not.toMatch(/:\/\/\w+:\w+@/);
      expect(examples.replaceAll(/'[^']*'|"[^"]*"/g, "")).not.toMatch(/[?*]/);
    }
  });

  it("shows each command of a group on one line", () => {
    const program = createFullProgram();
    for (const group of [program, ...program.commands].filter(({ commands }) => commands.length)) {
      const lines = helpOf(group).split("\n");
      const { length } = lines.filter((line) => /^ {2}[a-z][a-z, -]*? {2,}\S/.test(line));
      expect(length).toBe(group.createHelp().visibleCommands(group).length);
      expect(lines.filter((line) => /^ {6,}/.test(line))).toEqual([]);
    }
  });
});
