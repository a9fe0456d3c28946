import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { describeInBrowser } from "../support/browser/browser.js";
import { accessibilityViolations, button } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";

describeInBrowser("the API reference", (browser) => {
  let server: TestServer;
  let root: BootstrapResult;
  let url: string;

  beforeAll(async () => {
    // Contains the default, which must not be replaced twice.
    server = await startServer("lmdb", { environment: { KEY_HEADER: "X-SVC-API-KEY" } });
    root = await server.createTenant();
    url = `${server.url}/docs/api`;
  });

  afterAll(() => server.close());

  it("finds an operation, and copies its sample in the chosen language", async () => {
    const { page, faults } = await browser.open(url, {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const navigation = page.getByRole("navigation", { name: "Pages" });
    await navigation.getByRole("searchbox").fill("authorize session");
    const links = navigation.locator("li").getByRole("link");
    expect(await links.filter({ visible: true }).allInnerTexts()).toEqual([
      expect.stringContaining("Authorize session"),
    ]);
    await page.keyboard.press("Enter");
    expect(page.url()).toBe(`${url}#authorize-session`);

    const operation = page.getByRole("region", { name: "Authorize session" });
    await operation.getByRole("tab", { name: "Go" }).click();
    await operation.getByRole("tabpanel").hover();
    await operation.getByRole("tabpanel").getByRole("button", { name: "Copy" }).click();
    await operation.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(copied).toContain(`http.NewRequest("POST", "${server.url}/sessions/authorize"`);
    expect(copied).toContain('"X-SVC-API-KEY"');

    // The language stays chosen for other operations and later visits.
    await page.reload();
    const other = page.getByRole("region", { name: "List applications" });
    expect(await other.getByRole("tabpanel").textContent()).toContain("package main");
    await openTryDialog(page, "List applications");
    expect(await page.getByRole("region", { name: "Request" }).innerText()).toContain(
      "package main",
    );
    await page.getByLabel("q query", { exact: true }).fill(root.key);
    // The browser does not send a form with an invalid value.
    expect(await page.locator("input:invalid").getAttribute("title")).toBe(
      "A key must not be in a URL.",
    );
    expect(faults).toEqual([]);
  });

  it("shares the address and the key header of the service with the other pages", async () => {
    const { page, faults } = await browser.open(`${server.url}/docs/tutorials/first-session`);
    const codes = page.locator(".content .code:not(.printed) pre");
    for (const path of ["/docs", "/docs/get-started", "/docs/tutorials/first-session"]) {
      await page.goto(server.url + path);
      const samples = (await codes.allTextContents()).join("\n");
      expect(samples).toContain(server.url);
      expect(samples).not.toMatch(/localhost:8080|(?<!X-)SVC-API-KEY|X-X-/);
      expect(await page.locator('a[href*="localhost:8080"]').count()).toBe(0);
    }
    expect(await codes.filter({ hasText: "X-SVC-API-KEY" }).count()).toBeGreaterThan(3);
    // A service that the page starts prints its own address.
    await page.goto(`${server.url}/docs/get-started`);
    const printed = page.locator(".printed", { hasText: "Your first key" });
    expect(await printed.innerText()).toContain("http://localhost:8080/console");
    // A text about the setting states its default.
    await page.goto(`${server.url}/docs/reference/settings`);
    await page.locator("td", { hasText: "SVC-API-KEY" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("passes the accessibility checks in both themes and widths", async () => {
    const { page, faults } = await browser.open(url);
    await keepOperations(page, operationsOfEachKind);
    for (const width of [360, 1_440]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await accessibilityViolations(page)).toEqual([]);
        await openTryDialog(page, "Create application");
        expect(await accessibilityViolations(page)).toEqual([]);
        await page.keyboard.press("Escape");
      }
    }
    expect(faults).toEqual([]);
  });

  it("tries out calls with keys that are masked and not stored", async () => {
    const { page, faults } = await browser.open(url);
    await page.route("**/openapi.json", (route) => route.abort(), { times: 1 });
    const operation = page.getByRole("region", { name: "Who am I" });
    await operation.getByRole("button", { name: "Try it" }).click();
    await operation.getByRole("button", { name: "Not loaded. Try again" }).click();
    await page.getByRole("dialog").getByRole("heading", { name: "Who am I" }).waitFor();
    expect(await operation.locator("[data-try]").textContent()).toBe("Try it");
    expect(await page.getByLabel("Key X-SVC-API-KEY").getAttribute("type")).toBe("password");
    await page.getByLabel("Key X-SVC-API-KEY").fill("lk_…");
    await button(page, "Send").click();
    await page.getByText("characters that headers cannot contain").waitFor();
    await page.getByLabel("Key X-SVC-API-KEY").fill(root.key);
    const me = await send(page);
    expect(await me.innerText()).toMatch(new RegExp(`200.*${root.tenantId}`, "s"));
    await me.getByText("headers").click();
    expect(await me.innerText()).toContain("x-request-id");
    await page.keyboard.press("Escape");

    // The key is remembered until the page is left.
    await openTryDialog(page, "Create application");
    const body = page.getByLabel("Body");
    await body.fill("{");
    await page.getByText("Not valid JSON").waitFor();
    expect(await page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    await body.fill('{ "name": "Reports", "type": "private", "permissions": ["token"] }');
    const invalid = await send(page);
    await invalid.getByRole("link", { name: "About invalid_request" }).waitFor();
    expect(await invalid.getByRole("listitem").allInnerTexts()).toEqual([
      expect.stringMatching(/^permissions\[0\] must be two or three/),
    ]);
    await body.fill('{ "name": "Reports", "type": "private", "permissions": ["token:read"] }');
    const sample = page.getByRole("region", { name: "Request" });
    expect(await sample.innerText()).toContain('"name": "Reports"');
    expect(await sample.innerText()).toContain("X-SVC-API-KEY: $SVC_API_KEY");
    const created = await send(page);
    expect(await created.innerText()).toMatch(/201.*"key": "lk_prv_…"/s);
    await created.getByRole("button", { name: "Show keys" }).click();
    const [key = ""] = /lk_prv_\w+/.exec(await created.innerText()) ?? [];
    await page.getByRole("button", { name: "Close" }).click();

    await openTryDialog(page, "List events");
    await page.getByLabel("Key X-SVC-API-KEY").fill(key);
    await page.getByLabel("size").fill("5");
    const total = page.getByLabel("include_total");
    expect(await total.locator("option").allInnerTexts()).toEqual(["–", "true", "false"]);
    const refused = await send(page);
    expect(await refused.innerText()).toMatch(/403.*requires the permission event:read/s);
    const link = refused.getByRole("link", { name: "permission_denied" });
    expect(await link.getAttribute("href")).toBe("/docs/errors/permission_denied");
    expect(await page.getByRole("region", { name: "Request" }).innerText()).toContain("?size=5");
    await page.keyboard.press("Escape");

    // A gateway sends its own key and that of its client.
    await openTryDialog(page, "Forward auth");
    expect(await page.locator("dialog.try input[type=password]").count()).toBe(2);

    expect(await page.content()).not.toContain(root.key);
    expect(await page.evaluate("JSON.stringify([localStorage, sessionStorage])")).not.toContain(
      "lk_",
    );
    expect(await page.context().cookies()).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("opens at the linked operation, in dark mode, on a phone", async () => {
    const { page, faults } = await browser.open(`${url}#authorize-session`, {
      viewport: { width: 360, height: 800 },
      colorScheme: "dark",
    });
    await expectInView(page.getByRole("heading", { name: "Authorize session" }));
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    await page.getByRole("button", { name: "Menu" }).click();
    await page.locator("#sidebar").getByRole("link", { name: "Create application" }).click();
    await expectInView(page.getByRole("heading", { name: "Create application" }));
    expect(faults).toEqual([]);
  });

  it("shows all samples without script", async () => {
    const { page, faults } = await browser.open(url, { javaScriptEnabled: false });
    const samples = page.getByRole("region", { name: "Who am I" }).locator(".tabs");
    expect(await samples.textContent()).toMatch(/curl.*TypeScript.*Go.*Python/s);
    expect(await page.getByRole("button", { name: "Try it" }).count()).toBe(0);
    expect(faults).toEqual([]);
  });
});

/** A list, a body, no response body, and a form. */
const operationsOfEachKind = [
  "List sessions",
  "Create application",
  "Delete session",
  "Introspect",
];

/** Removes the other operations, because a check of all takes minutes. */
async function keepOperations(page: Page, titles: readonly string[]): Promise<void> {
  const kept = await page.locator("section.operation").evaluateAll((sections, titles) => {
    const others = sections.filter(
      (section) => !titles.includes(section.querySelector("h3")?.textContent ?? ""),
    );
    for (const section of others) {
      section.remove();
    }
    return sections.length - others.length;
  }, titles);
  expect(kept).toBe(titles.length);
}

async function openTryDialog(page: Page, title: string): Promise<void> {
  const operation = page.getByRole("region", { name: title, exact: true });
  await operation.getByRole("button", { name: "Try it" }).click();
  await page.getByRole("dialog").getByRole("heading", { name: title }).waitFor();
}

/** Sends the request of the dialog, and waits for the response. */
async function send(page: Page): Promise<Locator> {
  const button = page.getByRole("button", { name: "Send" });
  await button.click();
  await button.and(page.locator(":enabled")).waitFor();
  const response = page.getByRole("region", { name: "Response" });
  await response.locator(".status").waitFor();
  return response;
}

async function expectInView(heading: Locator): Promise<void> {
  await heading.waitFor();
  const { y = -1 } = (await heading.boundingBox()) ?? {};
  expect(y).toBeGreaterThanOrEqual(0);
  expect(y).toBeLessThan(400);
}
