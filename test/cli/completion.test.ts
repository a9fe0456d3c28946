import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { complete, completionScript, fileCandidates, shells } from "../../src/cli/completion.js";
import { describeWith } from "../support/jest/suite.js";
import { latchkeyPath, withTempFolder } from "../support/service/run-latchkey.js";
import { createFullProgram } from "./run-cli.js";

async function completionsOf(...words: string[]): Promise<string[]> {
  const lines = await complete(createFullProgram(), words);
  return lines.map((line) => line.replace(/\t.*/, ""));
}

describe("completion", () => {
  it("lists commands and subcommands, without the hidden one", async () => {
    expect(await completionsOf("")).toEqual(expect.arrayContaining(["serve", "apps", "doctor"]));
    expect(await completionsOf("")).not.toContain("__complete");
    expect(await completionsOf("apps", "r")).toEqual(["rotate", "revoke-key", "rm"]);
    expect(await completionsOf("help", "ap")).toEqual(["apps"]);
    expect(await completionsOf("help", "apps", "ro")).toEqual(["rotate"]);
    expect(await completionsOf("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  it("lists options and the values of options with choices", async () => {
    expect(await completionsOf("apps", "ls", "--ty")).toEqual(["--type"]);
    expect(await completionsOf("apps", "delete", "--js")).toEqual(["--json"]);
    expect(await completionsOf("apps", "ls", "--type", "p")).toEqual(["private", "public"]);
    expect(await completionsOf("apps", "ls", "--type=m")).toEqual(["--type=management"]);
    expect(await completionsOf("apps", "ls", "--name", "x", "--order", "n")).toEqual([
      "newest",
      "name",
    ]);
    expect(await completionsOf("events", "--kind", "session.a")).toEqual(["session.authorized"]);
    expect(await completionsOf("apps", "create", "x", "--rules", "")).toEqual([fileCandidates]);
    expect(await completionsOf("import", "")).toEqual([fileCandidates]);
    expect(await completionsOf("serve", "--tls-cert", "")).toEqual([fileCandidates]);
    expect(await completionsOf("serve", "--log-level", "d")).toEqual(["debug"]);
  });

  it("describes each candidate", async () => {
    expect(await complete(createFullProgram(), ["whoa"])).toEqual([
      expect.stringMatching(/^whoami\tshow the owner/),
    ]);
  });
});

/** Runs a script in a shell, with `latchkey` on its PATH. */
async function runInShell(folder: string, shell: string, script: string): Promise<string> {
  const command = `#!/bin/sh\nexec '${process.execPath}' '${join(process.cwd(), latchkeyPath)}' "$@"\n`;
  await writeFile(join(folder, "latchkey"), command, { mode: 0o755 });
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, XDG_CONFIG_HOME: folder };
  return (await promisify(execFile)(shell, ["-c", script], { env, cwd: folder })).stdout;
}

describe("the completion script in bash", () => {
  it("completes commands, values, files and profiles", () =>
    withTempFolder(async (folder) => {
      await writeFile(join(folder, "rules of mine.json"), "[]");
      const profiles = { current: "one", profiles: { one: { url: "http://a", key: "k" } } };
      const config = join(folder, "config");
      await mkdir(join(config, "latchkey"), { recursive: true });
      await writeFile(join(config, "latchkey", "profiles.json"), JSON.stringify(profiles), {
        mode: 0o600,
      });
      const words = [
        ["latchkey", "sess"],
        ["latchkey", "apps", "ls", "--type", "=", "man"],
        ["latchkey", "apps", "create", "x", "--rules", "ru"],
        ["latchkey", "whoami", "--profile", ""],
      ];
      const script = words
        .map(
          (line) => `COMP_WORDS=(${line.map((word) => `'${word}'`).join(" ")})
            COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _latchkey; printf '%s|' "\${COMPREPLY[@]}"; echo`,
        )
        .join("\n");
      const output = await runInShell(
        folder,
        "bash",
        `export XDG_CONFIG_HOME='${config}'; eval "$(latchkey completion bash)"\n${script}`,
      );
      expect(output).toBe("sessions|\nmanagement|\nrules of mine.json|\none|\n");
    }));
});

for (const shell of shells) {
  describeWith([shell, "-c", "true"], `the completion script for ${shell}`, () => {
    it("calls the hidden command and has valid syntax", () =>
      withTempFolder(async (folder) => {
        const path = join(folder, shell);
        await writeFile(path, completionScript(shell));
        expect(completionScript(shell)).toContain("latchkey __complete -- ");
        await expect(promisify(execFile)(shell, ["-n", path])).resolves.toMatchObject({
          stderr: "",
        });
      }));
  });
}
