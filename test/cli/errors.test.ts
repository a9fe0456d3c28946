import { readFile } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { keyLength } from "../../src/contract/key-format.js";
import { useAdminCli } from "./admin-cli.js";

const { service, cli, adminEnvironment, runAsAdmin, runJson } = useAdminCli();

describe("a failing command", () => {
  it.each([
    ["a mistyped command", ["apps", "craete"], {}, 2, "(Did you mean create?)"],
    ["a mistyped option", ["apps", "ls", "--limti", "5"], {}, 2, "(Did you mean --limit?)"],
    [
      "a mistyped option with =",
      ["apps", "list", "--ordre=name"],
      {},
      2,
      "(Did you mean --order?)",
    ],
    ["a mistyped option of a group", ["apps", "--hlep=x"], {}, 2, "(Did you mean --help?)"],
    ["a mistyped option of ls", ["sessions", "--staet", "x"], {}, 2, "(Did you mean --state?)"],
    ["the same with =", ["sessions", "--staet=x"], {}, 2, "(Did you mean --state?)"],
    [
      "an option before its command",
      ["sessions", "--state", "x", "ls"],
      {},
      2,
      "must follow its command, for example latchkey sessions ls --state",
    ],
    ["a value of a flag", ["events", "--follow=x"], {}, 2, "option '--follow' takes no value"],
    ["a command that is an option", ["events", "follow"], {}, 2, "(Did you mean --follow?)"],
    ["a mistyped command of help", ["help", "demmo"], {}, 2, "(Did you mean demo?)"],
    ["a mistyped ls", ["permissions", "lst"], {}, 2, "(Did you mean one of list, ls?)"],
    ["an unknown value", ["apps", "ls", "--type=x"], {}, 2, "Allowed choices are private"],
    [
      "a value that the service refuses, by its option",
      ["apps", "create", "x", "--type", "private", "--permission", "X"],
      {},
      2,
      "--permission X: must be two or three",
    ],
    [
      "an invalid key",
      ["whoami"],
      { LATCHKEY_KEY: "lk_mgt_wrong" },
      4,
      "does not accept the key from LATCHKEY_KEY: The key is incomplete or mistyped: its checksum is wrong. " +
        `Copy all ${keyLength} characters. (request `,
    ],
    [
      "a key of another system",
      ["whoami"],
      { LATCHKEY_KEY: "sk_live_42" },
      4,
      "does not accept the key from LATCHKEY_KEY: This is not a Latchkey key",
    ],
    [
      "an unreachable service",
      ["whoami"],
      { LATCHKEY_URL: "http://127.0.0.1:1" },
      7,
      "http://127.0.0.1:1 is unreachable",
    ],
    [
      "an argument that is not a UUID",
      ["apps", "revoke-key", "x", "abc"],
      {},
      2,
      "latchkey: 'abc' is not a valid <key-id>. It must be a UUID.\n",
    ],
    [
      "a missing argument with choices",
      ["completion"],
      {},
      2,
      "missing required argument 'shell'. Allowed choices are bash, zsh, fish.\n",
    ],
    [
      "a name in the wrong case",
      ["apps", "get", "bootstrap"],
      {},
      5,
      'No application is named "bootstrap".\n(Did you mean "Bootstrap"?)\nList them',
    ],
    [
      "an unknown host",
      ["whoami"],
      { LATCHKEY_URL: "http://latchkey.invalid" },
      7,
      "http://latchkey.invalid is unreachable: the host was not found.",
    ],
    [
      "a missing temporary folder",
      ["demo"],
      { TMPDIR: "/missing" },
      1,
      "Cannot create a temporary folder in /missing: no such file or directory\n",
    ],
    [
      "a refused watch, without a table",
      ["events", "--follow"],
      { LATCHKEY_KEY: "lk_mgt_wrong" },
      4,
      "does not accept the key from LATCHKEY_KEY: The key is incomplete or mistyped",
    ],
    [
      "metadata without a value",
      ["apps", "update", "x", "--metadata", "team"],
      {},
      2,
      "It must be KEY=VALUE.",
    ],
    [
      "metadata with a repeated key",
      ["apps", "update", "x", "--metadata", "team=a", "--metadata", "team=b"],
      {},
      2,
      "Its key is used more than once.",
    ],
    [
      "metadata that the service refuses, by its option",
      [
        ...["apps", "create", "x", "--type", "private", "--permission", "a:b"],
        ...["--metadata", `${"k".repeat(41)}=v`],
      ],
      {},
      2,
      `--metadata: metadata["${"k".repeat(41)}"]: key must`,
    ],
    [
      "an update without a change",
      ["apps", "update", "x", "--if-match", "1", "--json"],
      {},
      2,
      "Pass at least one option to change",
    ],
    [
      "missing grants",
      ["apps", "create", "x", "--type", "private"],
      {},
      2,
      "Pass --permission or --rules.",
    ],
    ["an empty argument", ["apps", "get", ""], {}, 2, "application must not be empty."],
    ["an empty external id", ["apps", "get", "external:"], {}, 2, "external id after external:."],
    [
      "a mistyped option beside a missing one",
      ["apps", "create", "Reports", "--permision=a:b"],
      {},
      2,
      "(Did you mean --permission?)",
    ],
    [
      "a grace period that is too long",
      ["apps", "rotate", "x", "--grace", "31d"],
      {},
      2,
      "It must be a duration from 1s to 30d, for example 1h.",
    ],
    [
      "a grace period that is too short",
      ["apps", "rotate", "x", "--grace", "999ms"],
      {},
      2,
      "It must be a duration from 1s to 30d",
    ],
    ["an unknown profile", ["whoami", "--profile", "x"], {}, 5, 'No profile is named "x"'],
  ])("prints one line and sets the exit code for %s", async (_, args, environment, code, line) => {
    const result = await cli.run(args, { environment: { ...adminEnvironment(), ...environment } });
    expect(result).toMatchObject({ code, stdout: "" });
    expect(result.stderr).toMatch(/^latchkey: /);
    expect(result.stderr).toContain(line);
    expect(result.stderr).not.toContain(service.firstKey);
  });

  it.each([
    ["update", "--description", "text"],
    ["update", "--external-id", "svc-1"],
    ["update", "--metadata", "team=a"],
    ["update", "--expires", "30d"],
    ["rotate", "--grace", "1h"],
  ])(
    "apps %s refuses %s together with the option that negates it",
    async (command, option, value) => {
      const clear = option.replace("--", "--no-");
      for (const given of [
        [option, value, clear],
        [clear, option, value],
      ]) {
        const { code, stderr } = await runAsAdmin(["apps", command, "x", ...given]);
        expect(code).toBe(2);
        expect(stderr).toContain(`option '${clear}' cannot be used with option '${option} `);
      }
    },
  );

  it("lists the ids if a name is not unique", async () => {
    const create = ["apps", "create", "Double", "--type", "private", "--permission", "a:b"];
    const ids = [await runJson(create), await runJson(create)].map(({ id }) => id);
    const { code, stderr } = await runAsAdmin(["apps", "get", "Double"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^latchkey: Several applications are named "Double"\.\nUse an id:\n/);
    expect(ids.filter((id) => !stderr.includes(`\n  ${id}  private, created `))).toEqual([]);
  });

  it("reports a missing key, and two inputs from one stdin", async () => {
    const keyless = await cli.run(["whoami"], { environment: { LATCHKEY_URL: service.url } });
    expect(keyless).toMatchObject({ code: 4, stderr: expect.stringContaining("No key for") });
    const twice = await runAsAdmin(["check", "a:b", "--key-file", "-"], {
      input: service.firstKey,
    });
    expect(twice).toMatchObject({ code: 2, stderr: expect.stringContaining("Only one input") });
  });

  it("explains why a key file cannot be read", async () => {
    expect(await runAsAdmin(["check", "a:b", "--key-file", "."])).toMatchObject({
      code: 1,
      stderr: `latchkey: Cannot read the key for ${service.url} from .: illegal operation on a directory\n`,
    });
  });

  it.each([
    ["apps ls", "--created-by"],
    ["apps ls", "--permission"],
    ["apps ls", "--name"],
    ["apps update x", "--add-permission"],
    ["sessions ls", "--application"],
    ["sessions ls", "--authorized-by"],
    ["check a:b", "--container"],
    ["check a:b", "--origin"],
  ])("refuses an empty value: latchkey %s %s ''", async (command, option) => {
    expect(await runAsAdmin([...command.split(" "), option, ""])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `latchkey: ${option} must not be empty.\n`,
    });
  });

  it("prints the version as a command and as an option", async () => {
    const { version } = JSON.parse(await readFile("package.json", "utf8"));
    for (const word of ["version", "--version"]) {
      expect(await cli.run([word])).toMatchObject({ code: 0, stdout: `${version}\n` });
    }
  });

  it("explains that a service does not use TLS", async () => {
    const url = service.url.replace("http:", "https:");
    const environment = { LATCHKEY_URL: url, LATCHKEY_KEY: service.firstKey };
    expect(await cli.run(["whoami"], { environment })).toMatchObject({
      code: 7,
      stderr: `latchkey: ${url} does not use TLS: pass the URL with http instead of https.\n`,
    });
  });

  it("suggests nothing for a command that is similar to none", async () => {
    const unknown = await cli.runInProcess(["events", "watch"]);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.not.stringContaining("Did you mean") });
  });

  it("suggests commands that run as printed, also if npx started it", async () => {
    const environment = { ...adminEnvironment(), LATCHKEY_URL: "http://127.0.0.1:1" };
    const started = await cli.runInProcess(["whoami"], environment);
    expect(started.stderr).toContain("with latchkey serve");
    const byNpx = await cli.runInProcess(["whoami"], { ...environment, npm_command: "exec" });
    expect(byNpx.stderr).toContain("with npx latchkey serve");
  });
});

describe("latchkey help", () => {
  it("shows a command of a group, and refuses an unknown one", async () => {
    const shown = await cli.runInProcess(["help", "apps", "list"]);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining("latchkey apps ls") });
    const list = await cli.runInProcess(["help", "events", "ls"]);
    expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("latchkey events") });
    const unknown = await cli.runInProcess(["help", "apps", "ls", "x"]);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("no command 'x'") });
  });
});
