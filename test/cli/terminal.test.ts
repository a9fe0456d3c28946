import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "@jest/globals";
import { textWidth } from "../../src/cli/text.js";
import { useCleanup } from "../support/cleanup.js";
import { startHttp1Proxy } from "../support/http/http1-proxy.js";
import { describeWith, isFullSuite } from "../support/jest/suite.js";
import { latchkeyPath, runLatchkey } from "../support/service/run-latchkey.js";
import { firstKeyPattern } from "../support/service/service-process.js";
import { until } from "../support/until.js";
import { useAdminCli } from "./admin-cli.js";

const { service, cli, adminEnvironment } = useAdminCli();
const stopAfterTest = useCleanup();

/** `script` of util-linux runs a command in a terminal. Other versions lack this option. */
const script = ["script", "--version"] as const;

interface Terminal {
  readonly child: ChildProcess;
  /** The output so far. */
  output(): string;
  /** Waits for a prompt, and types a response. */
  respond(prompt: string, typed: string): Promise<void>;
  ended(): Promise<number | null>;
}

interface TerminalOptions {
  readonly cwd?: string;
  readonly columns?: number;
}

/** Runs `latchkey` in a terminal. */
function runInTerminal(
  args: readonly string[],
  environment: Record<string, string> = {},
  options: TerminalOptions = {},
): Terminal {
  return startTerminal([process.execPath, resolve(latchkeyPath), ...args], environment, options);
}

function startTerminal(
  words: readonly string[],
  environment: Record<string, string>,
  { cwd, columns = 80 }: TerminalOptions,
): Terminal {
  const command = `stty cols ${columns}; exec ${words.map((word) => `'${word}'`).join(" ")}`;
  const child = spawn("script", ["-qfec", command, "/dev/null"], {
    cwd,
    env: {
      PATH: process.env.PATH,
      TERM: "xterm",
      SHELL: "/bin/sh",
      ...cli.environment(environment),
    },
  });
  stopAfterTest(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (part) => {
    text += part;
  });
  const closed = once(child, "close");
  return {
    child,
    output: () => text,
    async respond(prompt, typed) {
      await until(async () => text.includes(prompt));
      child.stdin.write(typed);
    },
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}

async function createApplication(
  name: string,
  permissions: readonly string[] = ["a:b"],
): Promise<{ readonly id: string; readonly key: string }> {
  const type = permissions[0]?.startsWith("application:") ? "management" : "private";
  const response = await fetch(`${service.url}/applications`, {
    method: "POST",
    headers: { "SVC-API-KEY": service.firstKey, "Content-Type": "application/json" },
    body: JSON.stringify({ name, type, permissions }),
  });
  expect(response.status).toBe(201);
  return response.json() as Promise<{ id: string; key: string }>;
}

const demoFolders = () => readdirSync(cli.path("")).filter((name) => name.includes("demo"));

describeWith(script, "the CLI in a terminal", () => {
  it("prompts for a key without echo", async () => {
    const terminal = runInTerminal(["whoami"], { LATCHKEY_URL: service.url });
    await terminal.respond(`Key for ${service.url}: `, `wrong\u0015${service.firstKey}x\u007f\r`);
    expect(await terminal.ended()).toBe(0);
    expect(terminal.output()).toContain("Bootstrap");
    expect(terminal.output()).not.toContain(service.firstKey);
  });

  it("shows a readable log of the service, and the first key last, in a frame", async () => {
    const variables = { HOST: "127.0.0.1", DATA_DIR: cli.path("data"), NO_COLOR: "1" };
    const terminal = runInTerminal(["serve", "--port", "0", "--workers", "2"], variables);
    await until(async () => terminal.output().includes("╯"));
    const [ready, banner = ""] = terminal.output().split("\r\n\r\n  Console");
    expect(ready).toMatch(/^\d\d:\d\d:\d\d {2}INFO {3}listening at http:\S+ {2}store=embedded$/);
    const [, url = ""] = /listening at (\S+)/.exec(ready ?? "") ?? [];
    expect(banner).toContain(`  ${url}/console\r\n  Docs     ${url}/docs\r\n`);
    expect(banner).toMatch(
      /╭─ Your first key ─+╮\r\n.*\r\n {2}│ {2}(lk_mgt_\w+) {2}│\r\n[^{}]*╯\s*$/,
    );
    const [key = ""] = firstKeyPattern.exec(banner) ?? [];
    await fetch(`${url}/applications/key`, { headers: { "SVC-API-KEY": key } });
    await until(async () => terminal.output().includes("GetApplicationByKey  ok"));
    terminal.child.stdin?.write("\u0003");
    expect(await terminal.ended()).toBe(0);
  });

  it("prints the first key without a frame if the terminal is too narrow, and links at each start", async () => {
    const variables = { HOST: "127.0.0.1", DATA_DIR: cli.path("narrow data"), NO_COLOR: "1" };
    const serve = (columns: number) =>
      runInTerminal(["serve", "--port", "0", "--workers", "1"], variables, { columns });
    const first = serve(75);
    await until(async () => first.output().includes("store it safely"));
    expect(first.output()).toMatch(
      /\r\n\r\n {2}Your first key\r\n\r\n {2}lk_mgt_\w+\r\n\r\n {2}It is a management key\.\r\n/,
    );
    expect(first.output()).not.toMatch(/[╭│╰]/);
    first.child.stdin?.write("\u0003");
    expect(await first.ended()).toBe(0);

    const second = serve(80);
    await until(async () => second.output().includes("/docs"));
    const [, url = ""] = /listening at (\S+)/.exec(second.output()) ?? [];
    expect(second.output()).toMatch(/^\S+ {2}INFO {3}listening at .*\r\n\r\n {2}Console/);
    expect(second.output()).toContain(`  Console  ${url}/console\r\n  Docs     ${url}/docs\r\n`);
    expect(second.output()).not.toContain("lk_mgt_");
    second.child.stdin?.write("\u0003");
    expect(await second.ended()).toBe(0);
  });

  it("shows a session from start to end in `npx latchkey demo`, and removes its folder", async () => {
    const project = cli.path("project");
    mkdirSync(join(project, "node_modules", ".bin"), { recursive: true });
    // As `npm install latchkey` does.
    symlinkSync(resolve("."), join(project, "node_modules", "latchkey"));
    symlinkSync(`../latchkey/${latchkeyPath}`, join(project, "node_modules", ".bin", "latchkey"));
    writeFileSync(join(project, "package.json"), "{}");
    const environment = {
      TMPDIR: cli.path(""),
      HOME: cli.path(""),
      npm_config_update_notifier: "false",
    };
    const terminal = startTerminal(["npx", "latchkey", "demo"], environment, { cwd: project });
    expect(await terminal.ended()).toBe(0);
    const text = stripVTControlCharacters(terminal.output());
    const calls = [...text.matchAll(/→ (\S+ \/\w+\S*?)[\r/](?:[^←]*)← (\d+)/g)];
    expect(calls.map(([, call, status]) => `${call} ${status}`)).toEqual([
      "POST /applications 201",
      "POST /applications 201",
      "POST /sessions 201",
      "GET /applications 403",
      "POST /sessions 204",
      "POST /access 200",
      "POST /sessions 409",
      "DELETE /sessions 204",
      "GET /whoami 401",
    ]);
    expect(text).toContain('{ "allowed": true, "transform": "mask" }');
    expect(text).toContain("Done. Each step went as expected.");
    expect(text).not.toMatch(/lk_[a-z]{3}_\w/);
    expect(Math.max(...text.split("\r\n").map(textWidth))).toBeLessThanOrEqual(80);
    expect(terminal.output()).toContain("\u001b[32m403 Forbidden\u001b[39m, as expected");
    expect(demoFolders()).toEqual([]);
  });

  it("wraps the text of `latchkey demo` in a narrow terminal", async () => {
    const terminal = runInTerminal(["demo"], { TMPDIR: cli.path("") }, { columns: 60 });
    expect(await terminal.ended()).toBe(0);
    const lines = stripVTControlCharacters(terminal.output()).split("\r\n");
    expect(lines).toContain("1. Create an application for your backend. Its private key");
    expect(lines).toContain("   stays secret.");
    const isJson = (line: string) => /^ +["{}]/.test(line);
    const texts = lines.filter((line) => !isJson(line));
    expect(Math.max(...texts.map(textWidth))).toBeLessThanOrEqual(60);
  });

  it("removes the folder of `latchkey demo` on Ctrl-C", async () => {
    const terminal = runInTerminal(["demo"], { TMPDIR: cli.path("") });
    await until(async () => demoFolders().length === 1);
    terminal.child.stdin?.write("\u0003");
    expect(await terminal.ended()).toBe(130);
    expect(terminal.output()).toMatch(/latchkey: Interrupted\. .* is removed\.\r\n$/);
    expect(demoFolders()).toEqual([]);
  });

  it("removes the folder of `latchkey demo` if the terminal is closed", async () => {
    const demo = runLatchkey(["demo"], { TMPDIR: cli.path("") });
    await until(async () => demoFolders().length === 1);
    demo.child.kill("SIGHUP");
    expect(await demo.ended()).toBe(130);
    expect(demoFolders()).toEqual([]);
  });

  it("exits with 130 on Ctrl-C at a prompt", async () => {
    const terminal = runInTerminal(["whoami"], { LATCHKEY_URL: service.url });
    await terminal.respond("Key for", "\u0003");
    expect(await terminal.ended()).toBe(130);
  });

  it("prompts for the URL, the key and a name in `latchkey init`, and before it writes a file", async () => {
    const folder = cli.path("my-service");
    mkdirSync(folder);
    writeFileSync(join(folder, "requirements.txt"), "");
    const init = runInTerminal(["init"], { XDG_CONFIG_HOME: folder }, { cwd: folder });
    await init.respond("URL of the service [http://localhost:8080]: ", `${service.url}/\r`);
    await init.respond(`Key for ${service.url}: `, `${service.firstKey}\r`);
    await init.respond("Name of the application [my-service]: ", "Bootstrap\r");
    await init.respond('"Bootstrap" already exists. Enter another name.', "\r");
    await init.respond("Write an example to latchkey_guard.py? [yes]: ", "\r");
    expect(await init.ended()).toBe(0);
    expect(init.output()).toContain('Created the private application "my-service"');
    const [key] = /lk_prv_\w+/.exec(init.output()) ?? [];
    const identity = await cli.run(["whoami"], {
      environment: { LATCHKEY_KEY: key ?? "", LATCHKEY_URL: service.url },
    });
    expect(identity.stdout).toMatch(/application +my-service {2}/);
    expect(readFileSync(join(folder, "latchkey_guard.py"), "utf8")).toContain(service.url);
  });

  it("shows each new key alone on a line of 80 columns", async () => {
    const environment = adminEnvironment();
    const shop = ["apps", "create", "Narrow", "--type", "public", "--permission", "token:create"];
    const created = runInTerminal(shop, environment);
    expect(await created.ended()).toBe(0);
    const [shopKey = ""] = /lk_pub_\w+/.exec(created.output()) ?? [];
    const opened = runInTerminal(["sessions", "open"], { ...environment, LATCHKEY_KEY: shopKey });
    const first = runInTerminal(["bootstrap"], { DATA_DIR: cli.path("narrow") });
    const terminals = [created, opened, first];
    await Promise.all(terminals.map((terminal) => terminal.ended()));
    for (const terminal of terminals) {
      const lines = stripVTControlCharacters(terminal.output()).split("\r\n");
      expect(lines.filter((line) => /^ {2}lk_\w+$/.test(line)).length).toBeGreaterThan(0);
      expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(80);
    }
  });

  it("omits columns of a list in a narrow terminal, but shows ids and states in full", async () => {
    const shop = ["apps", "create", "Small", "--type", "public", "--permission", "token:create"];
    const environment = adminEnvironment();
    const { stdout } = await cli.run([...shop, "--key-only"], { environment });
    const opened = await cli.run(["sessions", "open", "--json"], {
      environment: { ...environment, LATCHKEY_KEY: stdout.trim() },
    });
    const { id } = JSON.parse(opened.stdout);
    const list = runInTerminal(
      ["sessions", "ls", "--application", "Small"],
      { ...environment, NO_COLOR: "1" },
      { columns: 60 },
    );
    expect(await list.ended()).toBe(0);
    const [header, row] = list.output().split("\r\n");
    expect(header).toMatch(/^ID +STATE +EXPIRES$/);
    expect(row).toMatch(new RegExp(`^${id} +unauthorized +in \\w+$`));
  });

  it("saves the new key of a profile that rotated its own key, after a confirmation", async () => {
    const folder = { XDG_CONFIG_HOME: cli.path("own") };
    const { id, key } = await createApplication("Own", ["application:update", "application:read"]);
    const add = ["profile", "add", "own", "--url", service.url];
    expect((await cli.run(add, { environment: folder, input: key })).code).toBe(0);
    const rotate = runInTerminal(["apps", "rotate", id], folder);
    await rotate.respond('Save the new key to the profile "own"? [yes]: ', "\r");
    expect(await rotate.ended()).toBe(0);
    const [, newKey] = /^ {2}(lk_mgt_\w+)\r$/m.exec(rotate.output()) ?? [];
    const { profiles } = JSON.parse(readFileSync(cli.path("own/latchkey/profiles.json"), "utf8"));
    expect(profiles.own).toEqual({ url: service.url, key: newKey });
    expect(newKey).not.toBe(key);
  });

  it("deletes an application only after its name is typed", async () => {
    await createApplication("Doomed");
    const canceled = runInTerminal(["apps", "rm", "Doomed"], adminEnvironment());
    await canceled.respond('Type "Doomed" to confirm: ', "doomed\r");
    expect(await canceled.ended()).toBe(1);
    expect(canceled.output()).toContain("latchkey: Canceled. Nothing was changed.");
    const confirmed = runInTerminal(["apps", "rm", "Doomed"], adminEnvironment());
    await confirmed.respond('Type "Doomed" to confirm: ', "Doomed\r");
    expect(await confirmed.ended()).toBe(0);
    expect(confirmed.output()).toContain("was deleted.");
  });

  it("does not rotate a key if the application changed during the prompt", async () => {
    const { id } = await createApplication("Changed meanwhile");
    const rotate = runInTerminal(["apps", "rotate", id, "--no-grace"], adminEnvironment());
    const prompt = 'Type "yes" to confirm: ';
    await until(async () => rotate.output().includes(prompt));
    const headers = { "SVC-API-KEY": service.firstKey };
    await fetch(`${service.url}/applications/${id}/disable`, { method: "POST", headers });
    await rotate.respond(prompt, "y\r");
    expect(await rotate.ended()).toBe(6);
  });

  // These start processes, which is slow.
  if (isFullSuite) {
    it("shows the invisible characters of a name escaped, and accepts it as shown", async () => {
      const name = " Soft\u00adhyphen ";
      const shown = " Soft\\u{ad}hyphen ";
      const { id } = await createApplication(name);
      const environment = adminEnvironment();
      const disabled = await cli.run(["apps", "disable", id, "--yes"], { environment });
      expect(disabled.stdout).toBe(`"${shown}" is disabled.\n`);
      const emptied = await cli.run(["sessions", "rm", "--all", "--application", id, "--yes"], {
        environment,
      });
      expect(emptied.stdout).toContain(`All sessions that "${shown}" opened or authorized before `);
      expect(emptied.stdout).toContain("(0 open) are revoked.\n");
      const follow = runInTerminal(
        ["events", "--follow", "--json", "--since", "1h", "--target", id],
        environment,
      );
      await until(async () => follow.output().includes("application.sessions_revoked"));
      const rm = runInTerminal(["apps", "rm", id], environment);
      await rm.respond(`Type "${shown}" to confirm: `, `${shown}\r`);
      expect(await rm.ended()).toBe(0);
      expect(rm.output().replaceAll("\r\n", " ")).toContain(
        `The private application "${shown}" (${id}) will be deleted`,
      );
      expect(rm.output()).toContain(`"${shown}" (${id}) was deleted.`);
      await until(async () => follow.output().includes("application.deleted"));
      expect(follow.output()).toContain(" Soft\\u00adhyphen ");
      expect(follow.output()).not.toContain(name);
    });

    it("changes nothing on Ctrl-D at a prompt", async () => {
      const { id } = await createApplication("Kept");
      const disable = runInTerminal(["apps", "disable", id], adminEnvironment());
      await disable.respond('Type "yes" to confirm: ', "\u0004");
      expect(await disable.ended()).toBe(1);
      expect(disable.output()).toContain("latchkey: Canceled. Nothing was changed.");
    });

    it("draws a progress line for a long list and erases it at the end", async () => {
      await Promise.all(Array.from({ length: 101 }, (_, at) => createApplication(`Many ${at}`)));
      let calls = 0;
      let release = () => {};
      const proxy = await startHttp1Proxy(service.port, () =>
        ++calls === 2 ? new Promise((resolve) => (release = resolve)) : undefined,
      );
      stopAfterTest(() => void proxy.close());
      const list = runInTerminal(["apps", "ls", "--name", "Many", "--all"], {
        ...adminEnvironment(),
        LATCHKEY_URL: proxy.url,
      });
      await until(async () => list.output().includes("\r100 read\u001b[K"));
      release();
      expect(await list.ended()).toBe(0);
      expect(list.output()).toContain("100 read\u001b[K\r\u001b[K\u001b[2mNAME");
      expect(list.output().match(/Many \d+/g)).toHaveLength(101);
      expect(list.output()).toMatch(/101 applications\S*\r\n$/);
    });

    it("colors tables, fits them to the width and indents JSON", async () => {
      const [colored, plain, json] = [
        runInTerminal(["apps", "ls", "--name", "Bootstrap"], adminEnvironment()),
        runInTerminal(["apps", "ls", "--name", "Bootstrap"], {
          ...adminEnvironment(),
          NO_COLOR: "1",
        }),
        runInTerminal(["whoami", "--json"], adminEnvironment()),
      ];
      await Promise.all([colored, plain, json].map((terminal) => terminal.ended()));
      expect(colored.output()).toContain("\u001b[32menabled\u001b[39m");
      expect(plain.output()).not.toContain("\u001b[");
      const lines = plain.output().split("\r\n");
      expect(lines[1]).toContain("Bootstrap");
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
      expect(json.output()).toContain('{\r\n  "kind": "application",\r\n');
    });
  }
});
