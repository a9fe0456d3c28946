import { readFile } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { useAdminCli, useBackendAndShop } from "./admin-cli.js";

const admin = useAdminCli();
const { service, runAsAdmin, runJson, callRest } = admin;
const { backendId, backendKey, shopKey } = useBackendAndShop(admin);

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
    expect(shown.stdout).toMatch(new RegExp(`^authorized by +Backend  ${backendId()}$`, "m"));
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
