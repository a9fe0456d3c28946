import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import type { Command } from "commander";
import { exitCodes } from "../../src/cli/errors.js";
import { createWholeProgram } from "./whole-program.js";

const page = readFileSync("docs/cli.md", "utf8");

/** The commands that do something, each with its whole name. */
function leavesOf(command: Command, names: readonly string[] = []): [string, Command][] {
  const visible = command.createHelp().visibleCommands(command);
  const below = visible.filter((one) => one.name() !== "help");
  return below.length === 0
    ? [[names.join(" "), command]]
    : below.flatMap((one) => leavesOf(one, [...names, one.name()]));
}

const leaves = leavesOf(createWholeProgram());

/** What the page says of a command: from its line to the next one's. */
function sectionOf(name: string): string {
  const [, section = ""] = page.split(`\`latchkey ${name}`);
  return section.split(/\n(?=\| `latchkey |#)/)[0] ?? "";
}

/** The options that commands of a kind share are told once. */
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

describe("docs/cli.md", () => {
  it.each(leaves)("tells of `latchkey %s` and its own options", (name, command) => {
    const section = sectionOf(name);
    expect(section).not.toBe("");
    const own = command.options.flatMap(({ long }) => (long && !shared.has(long) ? [long] : []));
    expect(own.filter((option) => !section.includes(option))).toEqual([]);
  });

  it("tells of the options that many commands share", () => {
    const told = [...shared].filter((option) => page.includes(`\`${option}`));
    expect(told).toEqual([...shared]);
  });

  it("names no command that is not there", () => {
    const named = [...page.matchAll(/^\| `latchkey ([a-z -]+?)(?: [A-Z[<].*?)?`/gm)].map(
      ([, name]) => name,
    );
    expect(named.sort()).toEqual(leaves.map(([name]) => name).sort());
  });

  it("tells what each exit code means", () => {
    for (const { code, means } of Object.values(exitCodes)) {
      expect(page).toContain(`| ${code} | ${means} |`);
    }
  });
});

describe("--help", () => {
  it.each(leaves)("of `latchkey %s` has an example", (name, command) => {
    let text = "";
    command.configureOutput({
      writeOut: (part) => {
        text += part;
      },
    });
    command.outputHelp();
    expect(text).toMatch(new RegExp(`Examples?:\\n(.*\\n)*  .*latchkey ${name}`));
  });
});
