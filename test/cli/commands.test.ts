import { readFile, stat, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { useCleanup } from "../support/cleanup.js";
import { startHttp1Proxy } from "../support/http/http1-proxy.js";
import { startProxy } from "../support/http/tcp-proxy.js";
import { runLatchkey } from "../support/service/run-latchkey.js";
import { useService } from "../support/service/service-process.js";
import { type RunOptions, useCli } from "./run-cli.js";

const service = useService();
const cli = useCli();
const stopAfterTest = useCleanup();

const adminEnvironment = () => ({ LATCHKEY_URL: service.url, LATCHKEY_KEY: service.firstKey });

async function runAsAdmin(args: readonly string[], { environment, input }: RunOptions = {}) {
  const merged = { ...adminEnvironment(), ...environment };
  // Only another process has its own stdin.
  return input === undefined
    ? cli.runInProcess(args, merged)
    : cli.run(args, { environment: merged, input });
}

async function runJson(args: readonly string[], options: RunOptions = {}) {
  const { code, stdout, stderr } = await runAsAdmin([...args, "--json"], options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toHaveLength(2);
  return JSON.parse(stdout);
}

// biome-ignore lint/suspicious/noExplicitAny: it is JSON
async function callRest(path: string, method = "GET"): Promise<any> {
  const headers = { "SVC-API-KEY": service.firstKey };
  const response = await fetch(`${service.url}${path}`, { method, headers });
  return response.status === 204 ? undefined : response.json();
}

const backendKey = () => cli.path("backend.key");
const shopKey = () => cli.path("shop.key");
let backendId: string;

beforeAll(async () => {
  const create = ["apps", "create"];
  const [backend, shop] = await Promise.all([
    runJson([
      ...create,
      "Backend",
      "--type",
      "private",
      "--permission",
      "token:read",
      "--output-key",
      backendKey(),
    ]),
    runAsAdmin([
      ...create,
      "Web \u5e97",
      "--type",
      "public",
      "--permission",
      "token:create",
      "--expires",
      "30d",
      "--key-only",
    ]),
  ]);
  backendId = backend.id;
  expect(backend.key).toBeUndefined();
  await writeFile(shopKey(), shop.stdout);
});

describe("applications", () => {
  it("are listed as the same JSON as REST, and as tables", async () => {
    const [list, got, table] = await Promise.all([
      runJson(["apps", "ls", "--type", "private", "--name", "Backend"]),
      runJson(["apps", "get", "Backend"]),
      runAsAdmin(["apps", "ls"]),
    ]);
    expect(list.data).toEqual([got]);
    expect(got).toEqual(await callRest(`/applications/${backendId}`));
    expect(table.stdout).toMatch(/^NAME +TYPE +STATUS +EXPIRES +LAST USED +PERMISSIONS +ID\n/);
    expect(table.stdout).toMatch(/\nWeb \u5e97 {5}public {6}enabled {2}in 30d /);
  });

  it("are found by words, by a key and by their creator", async () => {
    const key = (await readFile(backendKey(), "utf8")).trim();
    const [byWord, byKey, byCreator] = await Promise.all([
      runJson(["apps", "ls", "--search", "ACKEN"]),
      runJson(["apps", "ls", "--search", "-"], { input: key }),
      runJson(["apps", "ls", "--created-by", "Backend"]),
    ]);
    expect(byWord.data).toMatchObject([{ id: backendId }]);
    expect(byKey.data).toMatchObject([{ id: backendId }]);
    expect(byCreator.data).toEqual([]);
    const refused = await runAsAdmin(["apps", "ls", "--search", key]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("Use --search -") });
    expect(refused.stderr).not.toContain(key);
  });

  it("are listed with a note if the list is not complete", async () => {
    const { total_items } = (await callRest("/applications")).pagination;
    const { stdout, stderr } = await runAsAdmin(["apps", "ls", "--limit", "1"]);
    expect(stdout.split("\n")).toHaveLength(3);
    expect(stderr).toBe(`Showing 1 of ${total_items} applications. Use --all to list every one.\n`);
    expect((await runAsAdmin(["apps", "ls", "--all"])).stderr).toBe("");
    expect(await runAsAdmin(["apps", "list", "--search", "no such words"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "No applications found.\n",
    });
  });

  it("are shown with the name and id of their creator, or only the id if the key may not read it", async () => {
    const { id } = await callRest("/applications/key");
    const shown = await runAsAdmin(["apps", "get", "Backend"]);
    expect(shown.stdout).toMatch(new RegExp(`^created by +Bootstrap  ${id}$`, "m"));
    const checker = await runJson([
      ...["apps", "create", "Checker", "--type", "private", "--permission", "access:check"],
    ]);
    for (const [key, application] of [
      [service.firstKey, `Backend  ${backendId}`],
      [checker.key, backendId],
    ]) {
      const check = ["check", "token:read", "--subject-file", backendKey()];
      const { code, stdout } = await runAsAdmin(check, { environment: { LATCHKEY_KEY: key } });
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`^application +${application}$`, "m"));
    }
  });

  it("have their new key written to a file of mode 0600 or printed alone", async () => {
    expect((await stat(backendKey())).mode & 0o777).toBe(0o600);
    expect(await readFile(backendKey(), "utf8")).toMatch(/^lk_prv_\w{61}\n$/);
    expect(await readFile(shopKey(), "utf8")).toMatch(/^lk_pub_\w{61}\n$/);
    const refused = await runAsAdmin([
      "apps",
      "rotate",
      "Backend",
      "--grace",
      "1h",
      "--output-key",
      backendKey(),
    ]);
    expect(refused).toMatchObject({ code: 6, stdout: "" });
    expect((await callRest(`/applications/${backendId}/keys`)).data).toHaveLength(1);
  });

  it("are updated in the given fields only, and at the expected version only", async () => {
    const { id, version } = await runJson([
      ...["apps", "create", "Changing", "--type", "private", "--permission", "token:read"],
      ...["--permission", "token:use", "--allowed-cidr", "203.0.113.0/24"],
    ]);
    const rule = {
      priority: 1,
      container: "/pci/",
      transform: "mask",
      permissions: ["token:read"],
    };
    const changed = await runJson(
      [
        "apps",
        "update",
        id,
        "--add-permission",
        "a:b",
        "--remove-permission",
        "token:use",
        "--rules",
        "-",
      ],
      { input: JSON.stringify([rule]) },
    );
    expect(changed).toMatchObject({
      name: "Changing",
      permissions: ["token:read", "a:b"],
      rules: [rule],
      allowed_cidrs: ["203.0.113.0/24"],
    });
    const anywhere = await runJson(["apps", "update", id, "--any-cidr"]);
    expect(anywhere).toMatchObject({ permissions: ["token:read", "a:b"], allowed_cidrs: [] });
    const stale = await runAsAdmin(["apps", "update", id, "--name", "x", "--if-match", version]);
    expect(stale.code).toBe(6);
    const invalid = await runAsAdmin(["apps", "update", id, "--rules", "-"], {
      input: '[{"prio": 1}]',
    });
    expect(invalid).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("stdin: rules[0]: "),
    });
  });

  it("can be given a session quota, which can be cleared", async () => {
    const { id, session_quota } = await runJson([
      ...["apps", "create", "Shop with a quota", "--type", "public"],
      ...["--permission", "token:create", "--session-quota", "7"],
    ]);
    const changed = await runJson(["apps", "update", id, "--session-quota", "8"]);
    expect([session_quota, changed.session_quota]).toEqual([7, 8]);
    expect((await runAsAdmin(["apps", "get", id])).stdout).toMatch(/^session quota +8$/m);
    const cleared = await runJson(["apps", "update", id, "--default-session-quota"]);
    expect(cleared).not.toHaveProperty("session_quota");
  });

  it("can have a description, an external id, metadata and an expiry, which can be changed and cleared", async () => {
    const labels = {
      description: "Pays bills.\nAsk the payments team.",
      external_id: "svc-1",
      metadata: { team: "payments", query: "a=b" },
    };
    const { id, ...created } = await runJson([
      ...["apps", "create", "Labelled", "--type", "private", "--permission", "a:b"],
      ...["--description", labels.description, "--external-id", "svc-1", "--expires", "30d"],
      ...["--metadata", "team=payments", "--metadata", "query=a=b"],
    ]);
    expect(created).toMatchObject(labels);
    const renamed = await runJson(["apps", "update", id, "--name", "Renamed"]);
    expect(renamed).toMatchObject({ ...labels, expires_at: created.expires_at });
    expect((await runAsAdmin(["apps", "get", id])).stdout).toMatch(
      /^description +Pays bills\.\n +Ask the .*\nexternal id +svc-1\nmetadata +team=payments\n +query=a=b\n/m,
    );
    const changed = await runJson([
      ...["apps", "update", id, "--metadata", "team=risk", "--expires", "60d"],
    ]);
    expect(changed.metadata).toEqual({ team: "risk" });
    expect(changed.expires_at > created.expires_at).toBe(true);
    const cleared = await runJson([
      ...["apps", "update", id, "--no-description", "--no-external-id"],
      ...["--no-metadata", "--no-expires"],
    ]);
    const { description, external_id, metadata, expires_at } = cleared;
    expect({ description, external_id, metadata, expires_at }).toEqual({ metadata: {} });
  });

  it("are found by their external id wherever a command takes an application", async () => {
    const { key: _, ...created } = await runJson([
      ...["apps", "create", "Known elsewhere", "--type", "public", "--permission", "token:create"],
      ...["--external-id", "Svc 2"],
    ]);
    expect(await runJson(["apps", "get", "external:Svc 2"])).toEqual(created);
    expect((await runJson(["apps", "ls", "--external-id", "Svc 2"])).data).toEqual([created]);
    expect((await runJson(["apps", "keys", "external:Svc 2"])).data).toHaveLength(1);
    expect((await runJson(["sessions", "ls", "--application", "external:Svc 2"])).data).toEqual([]);
    expect(await runAsAdmin(["apps", "rm", "external:svc 2", "--yes"])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('No application has the external id "svc 2".'),
    });
    expect(await runJson(["apps", "rm", "external:Svc 2", "--yes"])).toEqual({ id: created.id });
  });

  it("cannot share an external id", async () => {
    const create = ["apps", "create", "Twin", "--type", "private", "--permission", "a:b"];
    await runJson([...create, "--external-id", "svc-3"]);
    expect(await runAsAdmin([...create, "--external-id", "svc-3"])).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('has the external id "svc-3"'),
    });
  });

  it("are rotated, disabled, enabled and deleted by name, after confirmation", async () => {
    const { id } = await runJson([
      "apps",
      "create",
      "Short",
      "--type",
      "private",
      "--permission",
      "a:b",
    ]);
    for (const command of [
      ["rotate", "Short", "--no-grace"],
      ["disable", "Short"],
      ["revoke-key", id, id],
      ["rm", "Short"],
    ]) {
      const { code, stderr } = await runAsAdmin(["apps", ...command]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/"Short".*Not a terminal; pass --yes to confirm\./);
    }
    expect((await runAsAdmin(["apps", "rotate", "Short"])).stderr).toMatch(
      /^The key is shown only once\. .*\nThe previous key stays valid for 1d\..*\n$/,
    );
    const { data: rotated } = await runJson(["apps", "keys", "Short"]);
    expect(Date.parse(rotated[1].expires_at) - Date.parse(rotated[0].created_at)).toBe(86_400_000);
    const revoked = await runAsAdmin(["apps", "rotate", "Short", "--no-grace", "--yes"]);
    expect(revoked.stderr).toContain("All previous keys are revoked.");
    expect((await runJson(["apps", "keys", "Short"])).data).toHaveLength(1);
    expect(await runJson(["apps", "rotate", "Short", "--grace", "1h"])).toMatchObject({ id });
    const { data: keys } = await runJson(["apps", "keys", "Short"]);
    await runJson(["apps", "revoke-key", id, keys[1].id, "--yes"]);
    expect((await runJson(["apps", "keys", "Short"])).data).toMatchObject([{ id: keys[0].id }]);
    expect(await runJson(["apps", "disable", "Short", "--yes"])).toMatchObject({
      status: "disabled",
    });
    expect((await runAsAdmin(["apps", "enable", id])).stdout).toBe('"Short" is enabled.\n');
    expect(await runJson(["apps", "delete", "Short", "--yes"])).toEqual({ id });
    expect(await callRest(`/applications/${id}`)).toMatchObject({ status: 404 });
  });
});

describe("a session", () => {
  it("is opened, authorized with a nonce from stdin, checked, listed and revoked", async () => {
    const opened = await runJson(["sessions", "open", "--key-file", shopKey()]);
    const authorize = [
      "sessions",
      "authorize",
      "--key-file",
      backendKey(),
      "--permission",
      "token:read",
    ];
    expect((await runAsAdmin(authorize, { input: `${opened.nonce}\n` })).code).toBe(0);
    expect((await runAsAdmin(authorize, { input: opened.nonce })).code).toBe(6);

    const allowed = await runAsAdmin(["check", "token:read", "--container", "/pci/"], {
      input: opened.session_key,
    });
    expect(allowed).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^allowed\ntransform +mask\n/),
    });
    const denied = await runAsAdmin(["check", "token:use"], { input: opened.session_key });
    expect(denied.code).toBe(3);
    expect(denied.stdout).toMatch(/^denied\nreason +permission_missing\ndetail +.* token:use/);

    const { data } = await runJson(["sessions", "ls", "--application", "Web \u5e97"]);
    expect(data).toEqual([await callRest(`/sessions/${opened.id}`)]);
    expect(await runJson(["sessions", "get", opened.id])).toEqual(data[0]);
    const listed = await runAsAdmin(["sessions", "list", "--application", "Web \u5e97"]);
    expect(listed.stdout).toMatch(new RegExp(`\n${opened.id}  Web \u5e97 +authorized`));
    const shown = await runAsAdmin(["sessions", "get", opened.id]);
    expect(shown.stdout).toMatch(new RegExp(`^authorized by +Backend  ${backendId}$`, "m"));
    expect((await runAsAdmin(["sessions", "rm", opened.id])).code).toBe(2);
    await runJson(["sessions", "rm", opened.id, "--yes"]);
    expect((await runAsAdmin(["sessions", "get", opened.id])).code).toBe(5);
    const headers = { "SVC-API-KEY": (await readFile(shopKey(), "utf8")).trim() };
    await fetch(`${service.url}/sessions`, { method: "POST", headers });
    await runJson(["sessions", "rm", "--all", "--application", "Web \u5e97", "--yes"]);
    expect((await runJson(["sessions", "ls", "--application", "Web \u5e97"])).data).toEqual([]);
  });

  it("is listed with the name of its application, also in a list of more than one page", async () => {
    const post = async (path: string, key: string, body: object) => {
      const headers = { "SVC-API-KEY": key, "Content-Type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      return (await fetch(`${service.url}${path}`, init)).json() as Promise<{ key: string }>;
    };
    await Promise.all(
      Array.from({ length: 101 }, async (_, at) => {
        const shop = { name: `Shop ${at}`, type: "public", permissions: ["token:create"] };
        const { key } = await post("/applications", service.firstKey, shop);
        await post("/sessions", key, {});
      }),
    );
    const { stdout } = await runAsAdmin(["sessions", "ls", "--all"]);
    expect(new Set(stdout.match(/(?<= {2})Shop \d+/g)).size).toBe(101);
    const { data, pagination } = await runJson(["sessions", "ls", "--limit", "101"]);
    expect(data).toHaveLength(101);
    expect(pagination.total_items).toBeGreaterThanOrEqual(101);
    for (const [command, total] of [
      [["sessions", "ls"], /^Showing 5 of 1\d\d sessions\. Use --all/],
      [["events"], /^Showing 5 of [12]\d\d events\. Use --all/],
    ] as const) {
      expect((await runAsAdmin([...command, "--limit", "5"])).stderr).toMatch(total);
    }
  });
});

describe("events", () => {
  function followAt(url: string, ...options: readonly string[]) {
    const follow = runLatchkey(
      ["events", "--follow", "--json", "--since", "1h", ...options],
      cli.environment({ ...adminEnvironment(), LATCHKEY_URL: url }),
    );
    stopAfterTest(() => follow.child.kill("SIGKILL"));
    return follow;
  }

  it("are listed and followed through an HTTP/1.1 proxy, also after a lost connection, until the reader closes the pipe", async () => {
    const proxy = await startHttp1Proxy(service.port);
    stopAfterTest(() => void proxy.close());
    const listed = await runJson(
      ["events", "ls", "--limit", "1", "--kind", "application.created"],
      {
        environment: { LATCHKEY_URL: proxy.url },
      },
    );
    expect(listed.data).toHaveLength(1);
    const follow = followAt(proxy.url);
    await follow.until(new RegExp(listed.data[0].id));
    await callRest(`/applications/${backendId}/disable`, "POST");
    await follow.until(/"kind":"application.disabled"/);
    proxy.breakConnections();
    await callRest(`/applications/${backendId}/enable`, "POST");
    await follow.until(/"kind":"application.enabled","[^\n]*\n$/);
    const lines = follow.output.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    follow.child.stdout?.destroy();
    await callRest(`/applications/${backendId}/disable`, "POST");
    expect(await follow.ended()).toBe(0);
    expect(follow.output.stderr).toMatch(/^Connection lost\. Reconnecting\. .*\n$/);
    await callRest(`/applications/${backendId}/enable`, "POST");
  });

  it("are followed after a connection became silent", async () => {
    const proxy = await startProxy(service.port);
    stopAfterTest(() => void proxy.close());
    const { id } = await runJson([
      ...["apps", "create", "Silent", "--type", "private", "--permission", "a:b"],
    ]);
    const startWith = async (timeout: string) => {
      const follow = followAt(proxy.url, "--target", id, "--timeout", timeout);
      await follow.until(/"kind":"application.created"/);
      return follow;
    };
    // A slow machine may need longer for the first response.
    const follow = await startWith("2s").catch(() => startWith("30s"));
    proxy.blackhole();
    await callRest(`/applications/${id}`, "DELETE");
    await follow.until(/"kind":"application.deleted"/);
    expect(follow.output.stderr).toContain(`${proxy.url} did not respond in time.`);
  });
});

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
      "does not accept the key from LATCHKEY_KEY.",
    ],
    [
      "an unreachable service",
      ["whoami"],
      { LATCHKEY_URL: "http://127.0.0.1:1" },
      7,
      "http://127.0.0.1:1 is unreachable",
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
    ["an unknown profile", ["whoami", "--profile", "x"], {}, 5, 'No profile is named "x"'],
  ])("prints one line and sets the exit code for %s", async (_, args, environment, code, line) => {
    const result = await cli.run(args, { environment: { ...adminEnvironment(), ...environment } });
    expect(result).toMatchObject({ code, stdout: "" });
    expect(result.stderr).toMatch(/^latchkey: /);
    expect(result.stderr).toContain(line);
    expect(result.stderr).not.toContain(service.firstKey);
  });

  it.each([
    ["--description", "text"],
    ["--external-id", "svc-1"],
    ["--metadata", "team=a"],
    ["--expires", "30d"],
  ])("refuses %s together with the option that clears the field", async (option, value) => {
    const clear = option.replace("--", "--no-");
    for (const given of [
      [option, value, clear],
      [clear, option, value],
    ]) {
      const { code, stderr } = await runAsAdmin(["apps", "update", "x", ...given]);
      expect(code).toBe(2);
      expect(stderr).toContain(`option '${clear}' cannot be used with option '${option} `);
    }
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

  it("is explained by `latchkey help`, which knows the commands of a group", async () => {
    const shown = await cli.runInProcess(["help", "apps", "list"]);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining("latchkey apps ls") });
    const list = await cli.runInProcess(["help", "events", "ls"]);
    expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("latchkey events") });
    const other = await cli.runInProcess(["events", "watch"]);
    expect(other).toMatchObject({ code: 2, stderr: expect.not.stringContaining("Did you mean") });
    const unknown = await cli.runInProcess(["help", "apps", "ls", "x"]);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("no command 'x'") });
  });

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
});

describe("a profile", () => {
  it("is saved after its key was verified, used and deleted", async () => {
    const add = ["profile", "add", "local", "--url", service.url];
    const wrong = await cli.run(add, { input: "lk_mgt_wrong" });
    expect(wrong.code).toBe(4);
    const added = await cli.run(add, { input: `${service.firstKey}\n` });
    expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("Bootstrap") });
    expect(added.stdout + added.stderr).not.toContain(service.firstKey);
    expect((await stat(cli.path("latchkey/profiles.json"))).mode & 0o777).toBe(0o600);
    const list = await cli.runInProcess(["profile", "ls"]);
    const shortened = `lk_mgt_…${service.firstKey.slice(25, 29)}`;
    expect(list.stdout).toContain(`*  local  ${service.url}  ${shortened}`);
    expect(list.stdout).not.toContain(service.firstKey);
    expect(await cli.run(["whoami"])).toMatchObject({ code: 0, stdout: added.stdout });
    const whoami = (key: string) => cli.runInProcess(["whoami"], { SVC_API_KEY: key });
    expect((await whoami("another")).stderr).toBe(
      'Using the key of the profile "local", not SVC_API_KEY.\n',
    );
    expect((await whoami(service.firstKey)).stderr).toBe("");
    expect((await cli.runInProcess(["profile", "rm", "local"])).code).toBe(2);
    expect((await cli.runInProcess(["profile", "rm", "local", "--yes"])).code).toBe(0);
    expect((await cli.runInProcess(["profile", "use", "local"])).code).toBe(5);
  });
});
