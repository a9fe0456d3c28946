import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { exampleFor } from "../../src/cli/init.js";
import { latchkeyPath, withTempFolder } from "../support/service/run-latchkey.js";
import { useService } from "../support/service/service-process.js";
import { useCli } from "./run-cli.js";

const service = useService();
const cli = useCli();

/** Runs `latchkey init` in a folder, with profiles of its own. */
function init(folder: string, args: readonly string[], input = service.firstKey) {
  return cli.run(["init", ...args], {
    environment: { XDG_CONFIG_HOME: folder },
    input,
    cwd: folder,
  });
}

describe("latchkey init", () => {
  it("saves a profile, creates an application and writes a program that works", () =>
    withTempFolder(async (folder) => {
      await writeFile(join(folder, "package.json"), "{}");
      const first = await init(folder, ["--url", service.url, "--name", "Shop API", "--write"]);
      expect(first.code).toBe(0);
      expect(first.stderr).toContain(`Saved the profile "local" for ${service.url}.`);
      expect(first.stdout).toContain('Created the private application "Shop API"');
      expect(first.stderr).toContain(`npm install ${resolve(".")}\n`);

      await mkdir(join(folder, "node_modules"));
      await symlink(resolve("."), join(folder, "node_modules", "latchkey"));
      const [, command = ""] = /^ +(CALLER_KEY=.*)$/m.exec(first.stderr) ?? [];
      const [, key = ""] = /^ {2}(lk_prv_\w+)$/m.exec(first.stdout) ?? [];
      expect(first.stderr).toContain("  read -rs SVC_API_KEY && export SVC_API_KEY\n");
      const shell = ["-c", `${command}\nnode node_modules/latchkey/${latchkeyPath} whoami`];
      const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: folder, SVC_API_KEY: key };
      const { stdout } = await promisify(execFile)("sh", shell, { cwd: folder, env });
      expect(stdout).toMatch(/^allowed\n.*^application +Bootstrap /ms);

      // The second time, it uses the profile, and neither repeats the name nor overwrites the file.
      const again = await init(folder, ["--write"], "");
      expect(again.code).toBe(6);
      expect(again.stderr).toContain("latchkey-guard.mjs already exists.");
      const sameName = await init(folder, ["--name", "Shop API"], "");
      expect(sameName.code).toBe(6);
      expect(sameName.stderr).toContain('An application named "Shop API" already exists.');
      expect(sameName.stderr).toContain("latchkey apps rotate 'Shop API'\n");
      const unsaved = await init(folder, [
        ...["--profile", "new", "--url", service.url, "--name", "Shop API"],
      ]);
      expect(unsaved.stderr).toContain(`latchkey apps rotate 'Shop API' --url ${service.url}\n`);
      const shown = await init(folder, ["--name", "Other", "--profile", "local"], "");
      expect(shown.stderr).toContain("latchkey-guard.mjs already exists and was not changed.");
      const second = await init(folder, ["--json"], "");
      const { example, ...created } = JSON.parse(second.stdout);
      expect(created).toMatchObject({
        profile: "local",
        key: expect.stringMatching(/^lk_prv_/),
      });
      expect(example).toEqual({
        language: "typescript",
        file: "latchkey-guard.mjs",
        code: readFileSync(join(folder, "latchkey-guard.mjs"), "utf8"),
      });
      expect((await init(folder, ["--url", service.url])).stderr).toContain("already exists");
    }));

  it("saves and creates nothing if the service refuses the key", () =>
    withTempFolder(async (folder) => {
      const refused = await init(folder, ["--url", service.url, "--write"], "lk_mgt_wrong");
      expect(refused.code).toBe(4);
      expect(existsSync(join(folder, "latchkey"))).toBe(false);
      expect(existsSync(join(folder, "latchkey-guard.sh"))).toBe(false);
    }));

  it("creates nothing if the program cannot be written because of a link to a missing file", () =>
    withTempFolder(async (folder) => {
      await symlink(join(folder, "missing"), join(folder, "latchkey-guard.sh"));
      const args = ["--url", service.url, "--name", "Linked", "--write"];
      expect(await init(folder, args)).toMatchObject({
        code: 6,
        stdout: "",
        stderr: expect.stringContaining("latchkey-guard.sh already exists."),
      });
      expect(existsSync(join(folder, "latchkey"))).toBe(false);
    }));

  it("explains why the program cannot be written", () =>
    withTempFolder(async (folder) => {
      await writeFile(join(folder, "go.mod"), "");
      await writeFile(join(folder, "latchkey-guard"), "");
      const { code, stdout, stderr } = await init(folder, [
        ...["--url", service.url, "--name", "Blocked", "--write"],
      ]);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^ {2}lk_prv_\w+$/m);
      expect(stderr).toMatch(/^latchkey: Cannot write latchkey-guard\/main\.go: [a-z ]+$/m);
    }));

  it.each([
    [["package.json", "requirements.txt"], "latchkey-guard.mjs"],
    [["package.json", "tsconfig.json"], "latchkey-guard.mts"],
    [["go.mod"], "latchkey-guard/main.go"],
    [["pyproject.toml"], "latchkey_guard.py"],
    [["README.md"], "latchkey-guard.sh"],
  ])("chooses the language of a folder with %j", (files, expected) =>
    withTempFolder(async (folder) => {
      await Promise.all(files.map((file) => writeFile(join(folder, file), "")));
      const { file, commands } = exampleFor(folder);
      expect(file).toBe(expected);
      expect(commands.at(-1)).toContain(expected.replace("/main.go", ""));
    }),
  );
});
