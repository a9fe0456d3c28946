import { expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  expectEventually,
  horizontalOverflow,
  menu,
  signIn,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

/** Script, compressed with Brotli, that the sign-in and the first page may load, in bytes. */
const maxFirstLoad = 200_000;

describeInBrowser("console shell", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;

  it.each([
    "/overview",
    "/applications",
    "/applications/new",
    "/sessions",
    "/sessions/try",
    "/why",
    "/activity",
    "/me",
    "an application",
  ])("loads little script for the sign-in and %s", async (path) => {
    const { page, faults } = await browser.open("about:blank");
    let requested = 0;
    const scripts: Promise<number>[] = [];
    page.on("request", (request) => {
      requested += request.resourceType() === "script" ? 1 : 0;
    });
    page.on("requestfinished", (request) => {
      if (request.resourceType() === "script") {
        scripts.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
      }
    });
    // The other pages are preloaded after a pause.
    await page.addInitScript(
      "const start = setTimeout; window.setTimeout = (run, ms, ...rest) => ms >= 2000 ? 0 : start(run, ms, ...rest);",
    );
    const application = `/applications/${fixture.root.applicationId}`;
    await page.goto(`${fixture.server.url}/console${path.startsWith("/") ? path : application}`);
    await signIn({ page, faults }, fixture.root.key);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await expectEventually(() => page.getByText(/^Loading/).count(), 0);
    await expectEventually(() => requested - scripts.length, 0);
    const sizes = await Promise.all(scripts);
    expect(sizes.length).toBeGreaterThan(1);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(50_000);
    expect(total).toBeLessThanOrEqual(maxFirstLoad);
  });

  it("opens every page from the menu of a phone", async () => {
    const { page, faults } = await open("/why");
    const links = menu(page).getByRole("link");
    const names = await links.allTextContents();
    expect(names.length).toBeGreaterThan(5);
    await page.setViewportSize({ width: 360, height: 740 });
    await links.first().waitFor({ state: "hidden" });
    const toggle = page.getByRole("button", { name: "Menu" });
    for (const name of names.filter((name) => name !== "Documentation")) {
      await toggle.click();
      await links.last().waitFor();
      expect(await horizontalOverflow(page)).toBe(0);
      await menu(page).getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { level: 1 }).waitFor();
      await links.first().waitFor({ state: "hidden" });
    }
    await toggle.click();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole("button", { name: "Account" }).click();
    await page.getByRole("menuitemradio", { name: "Dark" }).click();
    await expectEventually(() => colorScheme(page), "dark");
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    expect(faults).toEqual([]);
  });

  it("finds applications, pages and actions in the palette, without a trace of a key", async () => {
    const shop = await fixture.api.createApplication(fixture.root.key, {
      name: "Web shop",
      type: "private",
      permissions: ["token:read"],
    });
    const { page, faults } = await open("/me");
    const search = page.getByRole("combobox", { name: "Search" });
    const heading = page.getByRole("heading", { level: 1, name: "Web shop" });
    await page.keyboard.press("Control+k");
    await waitForFocus(search);
    expect(await accessibilityViolations(page)).toEqual([]);
    for (const text of ["shop", keyOf(shop)]) {
      await search.fill(text);
      await page.getByRole("option", { name: "Web shop" }).waitFor();
      await expectEventually(() => page.getByRole("option").count(), 1);
      await page.keyboard.press("Enter");
      await heading.waitFor();
      await search.waitFor({ state: "detached" });
      await page.keyboard.press("Control+k");
      await waitForFocus(search);
    }
    expect(
      await page.evaluate<string>("location.href + JSON.stringify(history.state)"),
    ).not.toContain(keyOf(shop));
    await page.route("**/ListApplications", (route) =>
      route.fulfill({ json: { pagination: { pageSize: 6, next: "rest", incomplete: true } } }),
    );
    await search.fill("old shop");
    await page.getByText("Searching older applications…").waitFor();
    await page.getByRole("option", { name: "Search for “old shop” in Applications" }).waitFor();
    await page.unroute("**/ListApplications");
    await page.route("**/ListApplications", (route) =>
      route.fulfill({ status: 429, json: { code: "resource_exhausted", message: "Too many." } }),
    );
    await search.fill("older shop");
    await page.getByText("Applications: Too many.").waitFor();
    await page.unroute("**/ListApplications");
    await search.fill("rotate");
    await page.getByRole("option", { name: "Rotate key: Web shop" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: /^Rotate/ }).waitFor();
    // An action must not replace the open dialog.
    await page.keyboard.press("Control+k");
    await search.fill("disable");
    await page.getByText("Nothing matches.").waitFor();
    await search.fill("my key");
    await page.getByRole("option", { name: "My key" }).click();
    await page.getByRole("heading", { level: 1, name: "My key" }).waitFor();
    await page.getByRole("button", { name: "Search" }).click();
    await search.fill("check access");
    await page.getByRole("option", { name: "Why?" }).waitFor();
    // No application is shown here.
    await expectEventually(() => page.getByRole("option").count(), 1);
    for (const [text, option] of [
      ["docs", "Open the documentation"],
      ["export", "Activity"],
      ["expiring soon", "Applications expiring soon"],
    ] as const) {
      await search.fill(text);
      await page.getByRole("option", { name: option }).waitFor();
    }
    await search.fill("theme dark");
    await page.keyboard.press("Enter");
    await expectEventually(() => colorScheme(page), "dark");
    expect(faults).toEqual([]);
  });

  it("edits the application of the page and opens sessions from the palette", async () => {
    const shop = await fixture.api.createApplication(fixture.root.key, {
      name: "Edited shop",
      type: "public",
      permissions: ["token:read"],
    });
    const { id } = await fixture.api.createSession(keyOf(shop));
    const { page, faults } = await open(`/applications/${shop.id}`);
    const search = page.getByRole("combobox", { name: "Search" });
    await page.getByRole("heading", { level: 1, name: "Edited shop" }).waitFor();
    await page.keyboard.press("Control+k");
    await search.fill("edit details");
    await page.getByRole("option", { name: "Edit details: Edited shop" }).waitFor();
    await page.keyboard.press("Enter");
    await waitForFocus(page.getByRole("textbox", { name: "Name" }));
    await page.getByRole("button", { name: "Cancel" }).click();

    await page.keyboard.press("Control+k");
    await search.fill(id);
    await page.getByRole("option", { name: "Open the session" }).click();
    await page.getByRole("dialog", { name: "Session" }).getByText(id).waitFor();
    expect(faults).toEqual([]);
  });

  it("runs keyboard shortcuts, except while the user types", async () => {
    const { page, faults } = await open("/me");
    const heading = (name: string) => page.getByRole("heading", { level: 1, name }).waitFor();
    await page.keyboard.type("?");
    const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await sheet.getByText("Go to Applications").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.keyboard.type("n");
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    await heading("My key");
    await page.keyboard.type("ga");
    await heading("Applications");
    await page.keyboard.type("/");
    const field = page.getByRole("searchbox", { name: "Search" });
    await waitForFocus(field);
    await page.keyboard.type("gsn?/");
    expect(await field.inputValue()).toBe("gsn?/");
    await field.blur();
    await page.keyboard.type("gc");
    await heading("Activity");
    await page.keyboard.type("n");
    await waitForFocus(page.getByRole("textbox", { name: "Name" }));
    expect(faults).toEqual([]);
  });
});

function colorScheme(page: Page): Promise<string> {
  return page.evaluate<string>("document.documentElement.style.colorScheme");
}
