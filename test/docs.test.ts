import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { openapi } from "../gen/openapi.js";
import type { Bootstrapped } from "../src/bootstrap.js";
import { barriersIn } from "./support/axe.js";
import { describeInBrowser, type OpenedPage } from "./support/browser.js";
import { startServer, type TestServer } from "./support/server.js";

const operations = Object.entries(openapi.paths).flatMap(([path, verbs]) =>
  Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
);

describeInBrowser("the API reference", (browser) => {
  let server: TestServer;
  let root: Bootstrapped;
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { KEY_HEADER: "X-Shop-Key" } });
    root = await server.createTenant();
    opened = await browser.open(`${server.url}/docs`);
    page = opened.page;
    await page.locator("main[aria-busy=false] .opblock").first().waitFor();
  }, 60_000);

  afterAll(() => server.close());

  /** Opens an operation, sends the request that it shows, and waits for the answer. */
  async function tryOut(operationId: string): Promise<Locator> {
    const operation = page.locator(`.opblock[id$="-${operationId}"]`);
    await operation.locator(".opblock-summary-control").click();
    await operation.getByRole("button", { name: "Execute" }).click();
    const answer = operation.locator(".live-responses-table");
    await answer.waitFor();
    return answer;
  }

  it("lists every operation, and nothing stands in the way of people", async () => {
    const shown = await page.locator(".opblock-summary-control").evaluateAll((buttons) =>
      buttons.map((button) => {
        const text = (selector: string) => button.querySelector(selector)?.textContent ?? "";
        return `${text(".opblock-summary-method")} ${text(".opblock-summary-path")}`;
      }),
    );
    // Browsers are let break the paths at their slashes, by spaces that nobody sees.
    expect(shown.map((name) => name.replaceAll("\u200b", "")).sort()).toEqual(operations.sort());
    expect(await barriersIn(page)).toEqual([]);
  });

  it("takes a key, which is hidden and kept nowhere", async () => {
    await page.getByRole("button", { name: "Authorize" }).click();
    expect(await barriersIn(page)).toEqual([]);
    const input = page.locator(".auth-container input");
    expect(await input.getAttribute("type")).toBe("password");
    await page.getByText("X-Shop-Key").waitFor();
    await input.fill(root.key);
    await page.locator(".auth-btn-wrapper .authorize").click();
    await page.locator(".auth-btn-wrapper .btn-done").click();
    expect(await page.evaluate("localStorage.length + sessionStorage.length")).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
  });

  it("tries out a call, and shows the answer with its request id", async () => {
    const answer = await tryOut("whoAmI");
    const text = await answer.innerText();
    expect(text).toContain("200");
    expect(text).toContain(root.tenantId);
    expect(text).toMatch(/x-request-id: \S+/);
  });

  it("tries out the example of a call with a body, and shows no key but the new one", async () => {
    const answer = await tryOut("createApplication");
    const text = await answer.innerText();
    expect(text).toContain("201");
    expect(text).toMatch(/"key": "lk_pub_/);
    expect(await page.locator(".curl").last().innerText()).toContain("X-Shop-Key: …");
    expect(await page.content()).not.toContain(root.key);
    expect(await barriersIn(page)).toEqual([]);
  });

  it("breaks no rule of its policy, and asks no other host", () => {
    expect(opened.faults).toEqual([]);
  });

  it("opens at the operation that a link names, in dark, on a phone", async () => {
    const { page: phone, faults } = await browser.open(
      `${server.url}/docs#/Sessions/authorizeSession`,
      { viewport: { width: 360, height: 800 }, colorScheme: "dark" },
    );
    const operation = phone.locator('.opblock.is-open[id$="-authorizeSession"]');
    await operation.getByRole("button", { name: "Execute" }).waitFor();
    await operation.getByText("nonce_not_found").first().waitFor();
    expect(await phone.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(await barriersIn(phone)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("leads to the proto reference, which needs no script", async () => {
    const { page: proto, faults } = await browser.open(`${server.url}/docs`, {
      javaScriptEnabled: false,
    });
    await proto.getByRole("navigation").getByRole("link", { name: "Proto reference" }).click();
    await proto.getByRole("heading", { name: "WatchCredentials", exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  it.each([360, 1280])("shows the proto reference %i pixels wide", async (width) => {
    const { page: proto, faults } = await browser.open(`${server.url}/docs/proto#application`, {
      viewport: { width, height: 800 },
    });
    expect(await proto.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(await barriersIn(proto)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
