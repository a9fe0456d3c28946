import { readFile, stat } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { useAdminCli, useBackendAndShop } from "./admin-cli.js";

const admin = useAdminCli();
const { service, cli, runAsAdmin, runJson, callRest } = admin;
const { backendId, backendKey, shopKey } = useBackendAndShop(admin);

describe("applications", () => {
  it("are listed as the same JSON as REST, and as tables", async () => {
    const [list, got, table] = await Promise.all([
      runJson(["apps", "ls", "--type", "private", "--name", "Backend"]),
      runJson(["apps", "get", "Backend"]),
      runAsAdmin(["apps", "ls"]),
    ]);
    expect(list.data).toEqual([got]);
    expect(got).toEqual(await callRest(`/applications/${backendId()}`));
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
    expect(byWord.data).toMatchObject([{ id: backendId() }]);
    expect(byKey.data).toMatchObject([{ id: backendId() }]);
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
      [service.firstKey, `Backend  ${backendId()}`],
      [checker.key, backendId()],
    ]) {
      const check = ["check", "token:read", "--principal-file", backendKey()];
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
    expect((await callRest(`/applications/${backendId()}/keys`)).data).toHaveLength(1);
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

  it("are rotated by their own key with a warning and the command that replaces it in the profile", async () => {
    const create = ["apps", "create", "Owner", "--type", "management"];
    const { id, key } = await runJson([
      ...[...create, "--permission", "application:create", "--permission", "application:read"],
      ...["--permission", "application:update", "--permission", "application:delete"],
    ]);
    const add = ["profile", "add", "owner", "--url", service.url];
    expect((await cli.run(add, { input: key })).code).toBe(0);
    const asOwner = (...args: string[]) => cli.runInProcess([...args, "--profile", "owner"]);
    for (const command of ["disable", "rm"]) {
      expect((await asOwner("apps", command, id)).stderr).toContain("Your own key belongs to it");
    }
    const prompt = await asOwner("apps", "rotate", id, "--no-grace");
    expect(prompt.stderr).toContain("Your own key is one of them.");
    const output = cli.path("owner.key");
    const rotate = ["apps", "rotate", id, "--no-grace", "--yes", "--output-key", output];
    const rotated = await asOwner(...rotate);
    expect(rotated).toMatchObject({ code: 0 });
    expect(rotated.stderr).toContain('The profile "owner" still has the previous key.');
    const refused = await asOwner("whoami");
    const replace = `latchkey profile add owner --replace --url ${service.url}`;
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining(replace) });
    const [, command = ""] = /^ {2}latchkey (.*)$/m.exec(rotated.stderr) ?? [];
    expect(command).toBe(`${replace.slice("latchkey ".length)} --key-file ${output}`);
    expect((await cli.runInProcess(command.split(" "))).code).toBe(0);
    expect((await asOwner("whoami")).code).toBe(0);
    const other = await asOwner("apps", "rotate", "Backend", "--no-grace");
    expect(other.stderr).not.toContain("own key");
    await cli.runInProcess(["profile", "rm", "owner", "--yes"]);
  });
});
