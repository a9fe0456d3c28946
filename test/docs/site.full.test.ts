import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser } from "../support/browser/browser.js";
import { accessibilityViolations, button, horizontalOverflow } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const phone = { width: 360, height: 780 };
const desktop = { width: 1440, height: 900 };

describeInBrowser("the documentation site", (browser) => {
  let server: TestServer;
  let docs: string;

  beforeAll(async () => {
    server = await startServer("lmdb");
    docs = `${server.url}/docs`;
  });

  afterAll(() => server.close());

  it("leads from the overview to a page, its headings and its neighbors", async () => {
    const { page, faults } = await browser.open(docs, { viewport: desktop });
    expect(await page.getByRole("tabpanel").innerText()).toContain("createGuard");
    const sample = page.getByRole("tabpanel").locator("pre");
    expect(await sample.evaluate((it) => it.scrollWidth - it.clientWidth)).toBe(0);
    await page.getByRole("main").getByRole("link", { name: "Get started" }).first().click();
    await page.getByRole("heading", { name: "Get started", level: 1 }).waitFor();
    const command = page.locator(".code", { hasText: "npx latchkey demo" });
    await command.getByRole("button", { name: "Copy" }).waitFor();
    // The output of a command is not to be copied.
    expect(await page.locator(".code.output").getByRole("button").count()).toBe(0);
    await page.goBack();
    await page.getByRole("main").getByRole("link", { name: "Rotate a key" }).click();
    await page.getByRole("heading", { name: "Rotate a key", level: 1 }).waitFor();
    expect(page.url()).toBe(`${docs}/guides/rotate-a-key`);
    const sidebar = page.getByRole("navigation", { name: "Pages" });
    expect(await sidebar.locator("[aria-current=page]").innerText()).toBe("Rotate a key");

    const headings = page.getByRole("navigation", { name: "On this page" });
    await headings.getByRole("link", { name: "Limits" }).click();
    expect(page.url()).toMatch(/#limits$/);
    await page.getByRole("heading", { name: "A leaked or lost key" }).getByRole("link").click();
    expect(page.url()).toMatch(/#a-leaked-or-lost-key$/);
    await headings.locator("[aria-current]", { hasText: "A leaked or lost key" }).waitFor();

    await page.getByRole("link", { name: "Next Restrict a key" }).click();
    await page.getByRole("link", { name: "Previous Rotate a key" }).waitFor();
    await sidebar.getByRole("link", { name: "Errors", exact: true }).click();
    await page.getByRole("link", { name: "nonce_used", exact: true }).click();
    await page.getByRole("heading", { name: "Nonce already used" }).waitFor();
    expect(await sidebar.locator("[aria-current=page]").innerText()).toBe("nonce_used");
    await page.getByRole("link", { name: "POST /sessions/authorize" }).click();
    await page.getByRole("heading", { name: "Authorize session" }).waitFor();

    // Only the sidebar scrolls to the link of the page.
    await page.goto(`${docs}/contributing`);
    await sidebar
      .getByRole("link", { name: "Contributing" })
      .and(page.locator("[aria-current=page]"))
      .waitFor();
    expect(await sidebar.evaluate(({ scrollTop }) => scrollTop)).toBeGreaterThan(0);
    expect(await page.evaluate("scrollY")).toBe(0);
    expect(faults).toEqual([]);
  });

  it("finds pages, errors, operations and messages by keyboard", async () => {
    const { page, faults } = await browser.open(docs, { viewport: desktop });
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    const search = page.getByRole("combobox", { name: "Search the documentation" });
    const options = page.getByRole("listbox", { name: "Results" }).getByRole("option");
    const selected = page.locator("[role=option][aria-selected=true]");

    await page.keyboard.press("/");
    await search.fill("nonce used");
    await page.getByRole("group", { name: "Errors" }).waitFor();
    expect(await selected.innerText()).toContain("nonce_used");
    expect(await options.count()).toBeGreaterThan(3);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(requests.filter((url) => /search[^/]*\.json$/.test(url))).toHaveLength(1);
    await page.keyboard.press("ArrowUp");
    expect(await options.last().getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/docs/errors/nonce_used");

    await page.keyboard.press("Control+k");
    await search.fill("createapplicationreq");
    await page.getByRole("group", { name: "Proto reference" }).waitFor();
    await search.fill("rotate key");
    await selected.filter({ hasText: "Rotate a key" }).waitFor();
    await search.fill("xyzzy");
    await page.getByText("Nothing found for “xyzzy”.").waitFor();
    await page.keyboard.press("Escape");
    await search.waitFor({ state: "hidden" });
    await button(page, "Search").click();
    await search.waitFor();
    await page.getByRole("button", { name: "Close search" }).click();
    await search.waitFor({ state: "hidden" });
    expect(faults).toEqual([]);
  });

  it("remembers the language of samples and the theme", async () => {
    const { page, faults } = await browser.open(`${docs}/tutorials/first-session`, {
      viewport: desktop,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.getByRole("tab", { name: "curl" }).first().focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name: "Go", selected: true }).first().waitFor();
    await button(page, "Theme: auto").click();
    await button(page, "Theme: light").click();
    await button(page, "Theme: dark").waitFor();

    await page.goto(`${docs}/tutorials/guard-a-service`);
    await page.getByRole("tab", { name: "Go", selected: true }).waitFor();
    const panel = page.getByRole("tabpanel");
    await panel.hover();
    await panel.getByRole("button", { name: "Copy" }).click();
    await panel.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toMatch(/^package main/);
    expect(await page.evaluate("getComputedStyle(document.documentElement).colorScheme")).toBe(
      "dark",
    );
    expect(faults).toEqual([]);
  });

  it("shows the screenshot of the theme", async () => {
    const { page } = await browser.open(`${docs}/get-started`, { colorScheme: "dark" });
    const shown = () => page.evaluate<string>("document.querySelector('picture img').currentSrc");
    expect(await shown()).toContain("application-dark-");
    await button(page, "Theme: auto").click();
    await button(page, "Theme: light").waitFor();
    await until(async () => !(await shown()).includes("dark"));
    await page.emulateMedia({ colorScheme: "light" });
    await button(page, "Theme: light").click();
    await until(async () => (await shown()).includes("dark"));
  });

  it("copies without the clipboard, which browsers have only in a secure context", async () => {
    const { page } = await browser.open(docs);
    const origin = "http://docs.test";
    await page.route(`${origin}/**`, async (route) => {
      const url = route.request().url().replace(origin, server.url);
      await route.fulfill({ response: await route.fetch({ url }) });
    });
    await page.goto(`${origin}/docs/guides/rotate-a-key`);
    expect(await page.evaluate("isSecureContext")).toBe(false);
    const block = page.locator(".code:not(.output)").first();
    const code = (await block.locator("pre").textContent())?.trim() ?? "";

    await block.hover();
    await block.locator(".copy").click();
    await block.getByRole("button", { name: "Copied" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.press("Control+v");
    const search = page.getByRole("combobox", { name: "Search the documentation" });
    expect((await search.inputValue()).trim()).toBe(code.replaceAll("\n", " "));
    await page.keyboard.press("Escape");

    // As in a browser that blocks this too.
    await page.evaluate("document.execCommand = () => false");
    await block.locator(".copy").click();
    await block.getByRole("button", { name: "Press Ctrl+C" }).waitFor();
    expect(await page.evaluate("String(getSelection()).trim()")).toBe(code);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  it("has a menu on a phone, and filters the proto reference", async () => {
    const { page, faults } = await browser.open(`${docs}/proto`, { viewport: phone });
    expect(await horizontalOverflow(page)).toBe(0);
    const sidebar = page.locator("#sidebar");
    expect(await sidebar.isVisible()).toBe(false);
    await button(page, "Menu").click();
    await sidebar.getByRole("searchbox").fill("authorizesession");
    const links = sidebar.locator("li").getByRole("link").filter({ visible: true });
    expect(await links.allInnerTexts()).toEqual([
      "AuthorizeSession",
      "AuthorizeSessionRequest",
      "AuthorizeSessionResponse",
    ]);
    await links.first().click();
    await sidebar.waitFor({ state: "hidden" });
    expect(page.url()).toMatch(/#authorizesession/);
    await button(page, "Menu").click();
    await sidebar.getByRole("link", { name: "Docs" }).click();
    await page.getByRole("heading", { name: "Latchkey documentation" }).waitFor();

    // The cells of a row are below each other, each with the name of its column.
    await page.goto(`${docs}/reference/errors`);
    const table = page.locator(".table", { hasText: "409" }).first();
    expect(await table.evaluate((it) => it.scrollWidth - it.clientWidth)).toBe(0);
    const status = table.locator("td", { hasText: "409" }).first();
    expect(await status.getAttribute("data-column")).toBe("REST");
    expect(faults).toEqual([]);
  });

  it("searches everything for what a filter does not find", async () => {
    const { page, faults } = await browser.open(`${docs}/proto`, { viewport: phone });
    await button(page, "Menu").click();
    const filter = page.locator("#sidebar").getByRole("searchbox");
    const empty = page.getByText("No names match.");
    await filter.fill("authorize");
    expect(await empty.isVisible()).toBe(false);
    await filter.fill("expires_at");
    await empty.waitFor();
    await button(page, "Search everything").click();
    const search = page.getByRole("combobox", { name: "Search the documentation" });
    expect(await search.inputValue()).toBe("expires_at");
    await page.getByRole("listbox", { name: "Results" }).getByRole("option").first().waitFor();
    expect(faults).toEqual([]);
  });

  it("covers no code with a button on a touch screen", async () => {
    const { page } = await browser.open(docs, { viewport: phone, hasTouch: true, isMobile: true });
    for (const path of ["", "/reference/settings", "/guides/rotate-a-key", "/api"]) {
      await page.goto(docs + path);
      const gaps = await page.locator(".code .copy").evaluateAll((copies) =>
        copies.flatMap((copy) => {
          const code = copy.parentElement?.querySelector("code")?.getBoundingClientRect();
          const { height, bottom } = copy.getBoundingClientRect();
          return height > 0 && code ? [code.top - bottom] : [];
        }),
      );
      expect(gaps.length).toBeGreaterThan(0);
      expect([path, gaps.filter((gap) => gap < 0)]).toEqual([path, []]);
    }
  });

  it("cuts no table on a phone", async () => {
    const { page } = await browser.open(docs, { viewport: phone });
    const cut = [];
    for (const path of docsPaths()) {
      await page.goto(server.url + path);
      const widths = await page.locator(".table").evaluateAll((tables) =>
        tables.map((table) => {
          const cells = [table, ...table.querySelectorAll("td")];
          return Math.max(...cells.map((it) => it.scrollWidth - it.clientWidth));
        }),
      );
      cut.push(...widths.flatMap((width, table) => (width > 0 ? [{ path, table, width }] : [])));
    }
    expect(cut).toEqual([]);
  });

  it("is readable without script, and links from a page that does not exist", async () => {
    const { page } = await browser.open(`${docs}/errors/nothing`, {
      javaScriptEnabled: false,
      viewport: phone,
    });
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await button(page, "Menu").click();
    await page.locator("#sidebar").getByRole("link", { name: "Your first session" }).click();
    await page.getByText("package main").first().waitFor();
    expect(await page.locator(".tabs").first().innerText()).toMatch(
      /curl.*TypeScript.*Go.*Python/s,
    );
    expect(await button(page, "Search").count()).toBe(0);
  });

  it.each([
    "",
    "/guides",
    "/reference/cli",
    "/tutorials/first-session",
    "/errors/nonce_used",
    "/proto",
    "/nothing",
  ])("passes the accessibility checks in both themes and widths: /docs%s", async (path) => {
    const { page, faults } = await browser.open(docs + path);
    await shorten(page);
    for (const viewport of [phone, desktop]) {
      await page.setViewportSize(viewport);
      expect(await horizontalOverflow(page)).toBe(0);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await accessibilityViolations(page)).toEqual([]);
      }
    }
    expect(faults).toEqual([]);
  });
});

/** The paths of all pages. */
function docsPaths(): string[] {
  const names = readdirSync("dist/web/docs", { recursive: true, encoding: "utf8" });
  const pages = names.filter((name) => name.endsWith(".html"));
  return pages.map((name) => `/docs/${name.slice(0, -".html".length)}`);
}

/** Keeps the start of a long page, because a check of the whole proto reference takes a minute. */
async function shorten(page: Page): Promise<void> {
  await page.locator(".content > *").evaluateAll((elements) => {
    for (const element of elements.slice(80)) {
      element.remove();
    }
  });
}
