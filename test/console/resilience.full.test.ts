import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { Bootstrapped } from "../../src/bootstrap.js";
import { type Api, keyOf } from "../support/api.js";
import { createRestApi } from "../support/api-rest.js";
import { barriersIn } from "../support/axe.js";
import { describeInBrowser } from "../support/browser.js";
import { expectSoon, openSignedIn, signIn } from "../support/console.js";
import { lastingPorts } from "../support/lasting-ports.js";
import { startServer, type TestServer } from "../support/server.js";
import { until } from "../support/until.js";

const hour = 3_600_000;
const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };
const ended = "Your key does not work any more";
const lost = "The service cannot be reached. Trying again…";

/** Whether a script is there. */
const isLoaded = (name: string) =>
  `performance.getEntriesByType("resource").some((it) => it.name.includes("${name}"))`;

/** All that the browser keeps for a page, for the tab and beyond. */
function keptBy(page: Page): Promise<{ tab: string; beyond: string; cookies: string }> {
  return page.evaluate(
    "({ tab: JSON.stringify(sessionStorage), beyond: JSON.stringify(localStorage), cookies: document.cookie })",
  );
}

describeInBrowser("the console, when things go wrong", (browser) => {
  let server: TestServer;
  let root: Bootstrapped;
  let api: Api;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
    api = createRestApi(server.url);
  });

  afterAll(async () => {
    api.close();
    await server.close();
  });

  const open = (path: string, key: string) =>
    openSignedIn(browser, `${server.url}/console${path}`, key);

  /** An administrator whose key can end without those of others. */
  async function createAdmin(expiresAt?: number) {
    const { permissions } = await api.whoAmI(root.key);
    return api.createApplication(root.key, {
      name: "Console admin",
      type: "management",
      permissions,
      ...(expiresAt !== undefined && { expiresAt: timestampFromMs(expiresAt) }),
    });
  }

  /** Resolves when what was asked for at first is there: what comes now was heard of. */
  async function untilSettled(page: Page): Promise<void> {
    await page.getByText("● Live").waitFor();
    const key = keyOf(await api.createApplication(root.key, shop));
    // The first may be in what was asked for at first.
    for (let count = 0; count < 2; count++) {
      const { id } = await api.createSession(key);
      await page.getByRole("button", { name: id.slice(-8) }).waitFor();
    }
  }

  it("keeps a key nowhere, unless asked to, and then for the tab alone", async () => {
    const first = await open("/sessions", root.key);
    expect(await keptBy(first.page)).toEqual({ tab: "{}", beyond: "{}", cookies: "" });
    await first.page.reload();
    await first.page.getByLabel("API key").waitFor();
    await first.page.getByLabel("Keep it until this tab is closed").check();
    await signIn(first, root.key);
    expect(await keptBy(first.page)).toEqual({
      tab: JSON.stringify({ "latchkey-key": root.key }),
      beyond: "{}",
      cookies: "",
    });
    await first.page.reload();
    await first.page.getByRole("heading", { name: "Sessions" }).waitFor();
    await expectSoon(() => first.page.url(), `${server.url}/console/sessions`);

    const second = await browser.openBeside(first, `${server.url}/console/sessions`);
    await second.page.getByLabel("API key").waitFor();
    expect((await keptBy(second.page)).tab).toBe("{}");
    await signIn(second, root.key);
    await second.page.getByRole("button", { name: "Sign out" }).click();
    await second.page.getByLabel("API key").waitFor();
    await first.page.getByRole("link", { name: "Activity" }).click();
    await first.page.getByText("● Live").waitFor();
    await first.page.getByRole("button", { name: "Sign out" }).click();
    await first.page.getByLabel("API key").waitFor();
    expect((await keptBy(first.page)).tab).toBe("{}");
    expect([...first.faults, ...second.faults]).toEqual([]);
  });

  it("shows in one tab what is changed in another", async () => {
    const watcher = await open("/sessions", root.key);
    await watcher.page.getByText("● Live").waitFor();
    const changer = await browser.openBeside(watcher, `${server.url}/console/sessions/try`);
    await signIn(changer, root.key);
    await changer.page.getByRole("button", { name: "Make demo applications" }).click();
    await changer.page.getByRole("button", { name: "Open a session" }).click();
    await watcher.page.getByRole("link", { name: "Demo shop (temporary)" }).waitFor();
    await changer.page.getByRole("button", { name: "Remove the demo" }).click();
    await watcher.page
      .getByRole("link", { name: "Demo shop (temporary)" })
      .waitFor({ state: "detached" });
    expect([...watcher.faults, ...changer.faults]).toEqual([]);
  });

  it("does not keep a key that does not work", async () => {
    const { page, faults } = await browser.open(`${server.url}/console`);
    await page.getByLabel("API key").fill(root.key.replace(/.$/, "!"));
    await page.getByLabel("Keep it until this tab is closed").check();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    expect((await keptBy(page)).tab).toBe("{}");
    expect(await barriersIn(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("goes back to the sign-in when the key expires, also while nobody does anything", async () => {
    const admin = await createAdmin(server.clock.now() + hour);
    const opened = await browser.open(`${server.url}/console/sessions`);
    await opened.page.getByLabel("Keep it until this tab is closed").check();
    await signIn(opened, keyOf(admin));
    await untilSettled(opened.page);
    await opened.page.getByRole("link", { name: "Activity" }).click();
    await opened.page.getByText("Console admin was created by").waitFor();
    server.clock.advance(hour);
    await opened.page.getByText(ended).waitFor();
    expect((await keptBy(opened.page)).tab).toBe("{}");
    expect(await barriersIn(opened.page)).toEqual([]);
    await signIn(opened, root.key);
    await expectSoon(() => opened.page.getByText(ended).count(), 0);
    expect(opened.faults).toEqual([]);
  });

  it("asks again when a key is about to end that may not follow events", async () => {
    const viewer = await api.createApplication(root.key, {
      name: "Viewer",
      type: "private",
      permissions: ["token:read"],
      expiresAt: timestampFromMs(Date.now() + 4 * hour),
    });
    const { page, faults } = await browser.open(`${server.url}/console/me`);
    await page.clock.install();
    await signIn({ page, faults }, keyOf(viewer));
    await page.getByRole("heading", { name: "My key" }).waitFor();
    await api.deleteApplication(root.key, { id: viewer.id });
    await page.clock.fastForward(60_000);
    await page.getByText(ended).waitFor();
    expect(faults).toEqual([]);
  });

  it("follows what the key may do", async () => {
    const admin = await createAdmin();
    const { page, faults } = await open("/sessions", keyOf(admin));
    await untilSettled(page);
    await api.updateApplication(root.key, {
      id: admin.id,
      name: admin.name,
      permissions: ["event:read"],
    });
    await page.getByRole("link", { name: "Sessions", exact: true }).waitFor({ state: "detached" });
    await page.getByText("Your key may not do this").waitFor();
    expect(faults).toEqual([]);
  });

  it("lets nothing in but its own files, and sends keys in the header that the operator chose", async () => {
    const other = await startServer("lmdb", { environment: { KEY_HEADER: "X-Shop-Key" } });
    try {
      const { key } = await other.createTenant();
      const { page, faults } = await openSignedIn(browser, `${other.url}/console/activity`, key);
      await page.getByText("● Live").waitFor();
      const answer = await page.request.get(`${other.url}/console`);
      expect(answer.headers()["content-security-policy"]).toContain("default-src 'none'");
      expect(faults).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describeInBrowser("the console, while the service is away", (browser) => {
  const running: TestServer[] = [];

  afterAll(async () => {
    for (const server of running.reverse()) {
      await server.close();
    }
  });

  it("says so, keeps what was typed, and goes on by itself when it is back", async () => {
    const [port = 0] = await lastingPorts(1);
    const environment = { PORT: String(port) };
    const keeper = await startServer();
    running.push(keeper);
    const { store } = keeper;
    const root = await keeper.createTenant();
    const before = await startServer("lmdb", { store, environment });
    running.push(before);
    const opened = await browser.open(`${before.url}/console/activity`);
    const { page } = opened;
    await page.getByLabel("Keep it until this tab is closed").check();
    await signIn(opened, root.key);
    await page.getByText("● Live").waitFor();
    await until(() => page.evaluate<boolean>(isLoaded("sessions-page")));

    await before.close();
    running.pop();
    await page.getByText(lost).waitFor();
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    expect(await barriersIn(page)).toEqual([]);
    await page.getByRole("link", { name: "Activity" }).click();
    await page.getByLabel("Done by").fill("half a name");

    const after = await startServer("lmdb", { store, environment });
    running.push(after);
    await page.getByText(lost).waitFor({ state: "detached" });
    await page.getByText("● Live").waitFor();
    const api = createRestApi(after.url);
    await api.createApplication(root.key, shop);
    api.close();
    await page.getByText("Web shop was created by").waitFor();
    await expectSoon(() => page.getByLabel("Done by").inputValue(), "half a name");
    expect((await keptBy(page)).tab).toContain(root.key);
    expect(opened.faults).toEqual([]);
  });
});
