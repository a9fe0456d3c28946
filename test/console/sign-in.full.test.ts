import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  expectEventually,
  openSignedIn,
  signIn,
  signOut,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";
import { startServer } from "../support/service/server.js";

const hour = 3_600_000;
const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };
const signedOutNotice = "Your key is no longer valid";

/** The contents of the browser storage for a page. */
function readStorage(page: Page): Promise<{ tab: string; local: string; cookies: string }> {
  return page.evaluate(
    "({ tab: JSON.stringify(sessionStorage), local: JSON.stringify(localStorage), cookies: document.cookie })",
  );
}

describeInBrowser("console sign-in and permissions", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;

  /** A separate administrator, whose key can expire. */
  async function createAdmin(expiresAt?: number) {
    const { permissions } = await fixture.api.whoAmI(fixture.root.key);
    return fixture.api.createApplication(fixture.root.key, {
      name: "Console admin",
      type: "management",
      permissions,
      ...(expiresAt !== undefined && { expiresAt: timestampFromMs(expiresAt) }),
    });
  }

  /** Waits until the page has loaded and receives live events. */
  async function waitForLiveEvents(page: Page): Promise<void> {
    await page.getByText("Live", { exact: true }).waitFor();
    const key = keyOf(await fixture.api.createApplication(fixture.root.key, shop));
    // The first may be part of the initial load.
    for (let count = 0; count < 2; count++) {
      const { id } = await fixture.api.createSession(key);
      await page.getByRole("button", { name: id.slice(-8) }).waitFor();
    }
  }

  it("signs in by keyboard, explains a wrong key and does not store it", async () => {
    const { page, faults } = await browser.open(`${fixture.server.url}/console`);
    const field = page.getByLabel("API key");
    await waitForFocus(field);
    await page.getByLabel("Remember until this tab is closed").check();
    await field.focus();
    await page.keyboard.type("secret");
    await page.keyboard.press("Enter");
    await page.getByText("The keys that it creates start with lk_.").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.keyboard.type(fixture.root.key.slice(0, -1));
    await page.keyboard.press("Enter");
    await page.getByText("Copy the whole key again, or use another one.").waitFor();
    expect((await readStorage(page)).tab).toBe("{}");
    await page.keyboard.type(`"${fixture.root.key}"`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("lands on the overview after a sign-out from another page", async () => {
    const opened = await open("/activity");
    const { page, faults } = opened;
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await signOut(page);
    await signIn(opened, fixture.root.key);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("stores the key only on request, for the tab only", async () => {
    const first = await open("/sessions");
    expect(await readStorage(first.page)).toEqual({ tab: "{}", local: "{}", cookies: "" });
    await first.page.reload();
    await first.page.getByLabel("API key").waitFor();
    await first.page.getByLabel("Remember until this tab is closed").check();
    await signIn(first, fixture.root.key);
    expect(await readStorage(first.page)).toEqual({
      tab: JSON.stringify({ "latchkey-key": fixture.root.key }),
      local: "{}",
      cookies: "",
    });
    await first.page.reload();
    await first.page.getByRole("heading", { name: "Sessions" }).waitFor();
    await expectEventually(() => first.page.url(), `${fixture.server.url}/console/sessions`);

    const second = await browser.openTab(first, `${fixture.server.url}/console/sessions`);
    await second.page.getByLabel("API key").waitFor();
    expect((await readStorage(second.page)).tab).toBe("{}");
    await signIn(second, fixture.root.key);
    await signOut(second.page);
    await second.page.getByLabel("API key").waitFor();
    await first.page.getByRole("link", { name: "Activity" }).click();
    await first.page.getByText("Live", { exact: true }).waitFor();
    await signOut(first.page);
    await first.page.getByLabel("API key").waitFor();
    expect((await readStorage(first.page)).tab).toBe("{}");
    expect([...first.faults, ...second.faults]).toEqual([]);
  });

  it("forgets a stored key when the user signs in with another one", async () => {
    const admin = await createAdmin();
    const opened = await browser.open(`${fixture.server.url}/console/me`);
    const { page } = opened;
    await page.getByLabel("Remember until this tab is closed").check();
    await signIn(opened, fixture.root.key);
    await page.route("**/WhoAmI", (route) =>
      route.fulfill({ status: 429, json: { code: "resource_exhausted", message: "Too many." } }),
    );
    await page.reload();
    await page.getByText("Too many.").waitFor();
    await page.unroute("**/WhoAmI");
    await signIn(opened, keyOf(admin));
    await expectEventually(async () => (await readStorage(page)).tab, "{}");
  });

  it("shows changes from another tab", async () => {
    const watcher = await open("/sessions");
    await watcher.page.getByText("Live", { exact: true }).waitFor();
    const changer = await browser.openTab(watcher, `${fixture.server.url}/console/sessions/try`);
    await signIn(changer, fixture.root.key);
    await changer.page.getByRole("button", { name: "Create demo applications" }).click();
    await changer.page.getByRole("button", { name: "Open a session" }).click();
    await watcher.page.getByRole("link", { name: "Demo shop (temporary)" }).waitFor();
    await changer.page.getByRole("button", { name: "Delete the demo applications" }).click();
    await watcher.page
      .getByRole("link", { name: "Demo shop (temporary)" })
      .waitFor({ state: "detached" });
    expect([...watcher.faults, ...changer.faults]).toEqual([]);
  });

  it("returns to the sign-in when the key expires, even while idle", async () => {
    const admin = await createAdmin(fixture.server.clock.now() + hour);
    const opened = await browser.open(`${fixture.server.url}/console/sessions`);
    await opened.page.getByLabel("Remember until this tab is closed").check();
    await signIn(opened, keyOf(admin));
    await waitForLiveEvents(opened.page);
    await opened.page.getByRole("link", { name: "Activity" }).click();
    await opened.page.getByText("Console admin was created by").first().waitFor();
    fixture.server.clock.advance(hour);
    await opened.page.getByText(signedOutNotice).waitFor();
    expect((await readStorage(opened.page)).tab).toBe("{}");
    expect(await accessibilityViolations(opened.page)).toEqual([]);
    await signIn(opened, fixture.root.key);
    await expectEventually(() => opened.page.getByText(signedOutNotice).count(), 0);
    expect(opened.faults).toEqual([]);
  });

  it("shows the first steps to a key without permissions, and stops calling after it is deleted", async () => {
    const viewer = await fixture.api.createApplication(fixture.root.key, {
      name: "🔭 Viewer",
      type: "private",
      permissions: ["token:read"],
      expiresAt: timestampFromMs(Date.now() + 4 * hour),
    });
    const { page, faults } = await browser.open(`${fixture.server.url}/console/me`);
    await page.clock.install();
    await signIn({ page, faults }, keyOf(viewer));
    await page.getByRole("heading", { name: "My key" }).waitFor();
    expect(await page.locator(".avatar").textContent()).toBe("🔭");
    await page.getByRole("link", { name: "Overview" }).click();
    const started = page.getByRole("region", { name: "Getting started" });
    await started.getByRole("link", { name: "Start the guided demo" }).waitFor();
    expect(await started.getByRole("listitem").count()).toBe(1);
    await started.getByText("It needs the keys of a public and a private application.").waitFor();

    await fixture.api.deleteApplication(fixture.root.key, { id: viewer.id });
    await page.clock.fastForward(60_000);
    await page.getByText(signedOutNotice).waitFor();
    const calls: string[] = [];
    page.on("request", (request) => {
      // Scripts of other pages are preloaded whenever the browser has time.
      if (!request.url().includes("/assets/")) {
        calls.push(request.url());
      }
    });
    await page.clock.fastForward(10 * 60_000);
    const marker = `${fixture.server.url}/healthz`;
    await page.evaluate<unknown>(`fetch("${marker}")`);
    expect(calls).toEqual([marker]);
    expect(faults).toEqual([]);
  });

  it("updates when the permissions of the key change", async () => {
    const admin = await createAdmin();
    const { page, faults } = await open("/sessions", keyOf(admin));
    await waitForLiveEvents(page);
    await fixture.api.updateApplication(fixture.root.key, {
      id: admin.id,
      name: admin.name,
      permissions: ["event:read"],
    });
    await page.getByRole("link", { name: "Sessions", exact: true }).waitFor({ state: "detached" });
    await page.getByText("Your key needs the permission").waitFor();
    expect(faults).toEqual([]);
  });

  it("allows only its own files and sends keys in the configured header", async () => {
    const other = await startServer("lmdb", { environment: { KEY_HEADER: "X-Shop-Key" } });
    try {
      const { key } = await other.createTenant();
      const { page, faults } = await openSignedIn(browser, `${other.url}/console/activity`, key);
      await page.getByText("Live", { exact: true }).waitFor();
      const response = await page.request.get(`${other.url}/console`);
      expect(response.headers()["content-security-policy"]).toContain("default-src 'none'");
      expect(faults).toEqual([]);
    } finally {
      await other.close();
    }
  });
});
