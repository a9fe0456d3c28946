import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { openapi } from "../../gen/openapi.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import { accessibilityViolations } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";

const operations = Object.entries(openapi.paths).flatMap(([path, verbs]) =>
  Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
);

describeInBrowser("the API reference", (browser) => {
  let server: TestServer;
  let root: BootstrapResult;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { KEY_HEADER: "X-Shop-Key" } });
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  async function openReference(): Promise<OpenedPage> {
    const opened = await browser.open(`${server.url}/docs/api`);
    await opened.page.locator("#reference[aria-busy=false] .opblock").first().waitFor();
    return opened;
  }

  it("lists every operation, and passes the accessibility checks", async () => {
    const { page, faults } = await openReference();
    const shown = await page.locator(".opblock-summary-control").evaluateAll((buttons) =>
      buttons.map((button) => {
        const text = (selector: string) => button.querySelector(selector)?.textContent ?? "";
        return `${text(".opblock-summary-method")} ${text(".opblock-summary-path")}`;
      }),
    );
    // Zero-width spaces after the slashes allow line breaks.
    expect(shown.map((name) => name.replaceAll("\u200b", "")).sort()).toEqual(operations.sort());
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("tries out calls with a key that is masked and not stored", async () => {
    const { page, faults } = await openReference();
    await page.getByRole("button", { name: "Authorize", exact: true }).click();
    await page.getByText("X-Shop-Key").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    const inputs = await page.locator(".auth-container input").all();
    // The key of a caller and that of a gateway.
    expect(inputs).toHaveLength(2);
    for (const input of inputs) {
      expect(await input.getAttribute("type")).toBe("password");
    }
    await inputs[0]?.fill(root.key);
    await page.locator(".auth-btn-wrapper .authorize").first().click();
    await page.locator(".auth-btn-wrapper .btn-done").first().click();

    const me = await tryOut(page, "whoAmI");
    expect(me).toMatch(/^200$/m);
    expect(me).toContain(root.tenantId);
    expect(me).toMatch(/x-request-id: \S+/);
    const created = await tryOut(page, "createApplication");
    expect(created).toMatch(/^201$/m);
    expect(created).toMatch(/"key": "lk_pub_/);

    expect(await page.locator(".curl").last().innerText()).toContain("X-Shop-Key: …");
    expect(await page.content()).not.toContain(root.key);
    expect(await page.evaluate("localStorage.length + sessionStorage.length")).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("opens at the linked operation, in dark mode, on a phone", async () => {
    const { page: phone, faults } = await browser.open(
      `${server.url}/docs/api#/Sessions/authorizeSession`,
      { viewport: { width: 360, height: 800 }, colorScheme: "dark" },
    );
    const operation = phone.locator('.opblock.is-open[id$="-authorizeSession"]');
    await operation.getByRole("button", { name: "Execute" }).waitFor();
    await operation.getByText("nonce_not_found").first().waitFor();
    expect(await phone.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(await accessibilityViolations(phone)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("links to the proto reference, which needs no script", async () => {
    const { page: proto, faults } = await browser.open(`${server.url}/docs/api`, {
      javaScriptEnabled: false,
    });
    await proto
      .getByRole("navigation", { name: "Sites" })
      .getByRole("link", { name: "Proto reference" })
      .click();
    await proto.getByRole("heading", { name: "WatchCredentials", exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  it("shows the proto reference on a phone and on a desktop", async () => {
    const { page, faults } = await browser.open(`${server.url}/docs/proto#application`, {
      viewport: { width: 360, height: 800 },
    });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(1280);
    expect(faults).toEqual([]);
  });
});

/** Opens an operation, sends the shown request and returns the displayed response. */
async function tryOut(page: Page, operationId: string): Promise<string> {
  const operation = page.locator(`.opblock[id$="-${operationId}"]`);
  await operation.locator(".opblock-summary-control").click();
  await operation.getByRole("button", { name: "Execute" }).click();
  const text = await operation.locator(".live-responses-table").innerText();
  return text.replace(/[ \t]+$/gm, "");
}
