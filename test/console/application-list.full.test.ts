import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  choose,
  expectEventually,
  horizontalOverflow,
  openSignedIn,
} from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { seedApplications } from "./seed.js";

const count = 10_000;

describeInBrowser("console list of 10,000 applications", (browser) => {
  let server: TestServer;
  let root: BootstrapResult;
  let seeded: readonly ApplicationFields[];
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
    seeded = await seedApplications(server.store, root.tenantId, count);
    opened = await openSignedIn(browser, `${server.url}/console/applications`, root.key);
    ({ page } = opened);
  });

  afterAll(() => server.close());

  beforeEach(async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("link", { name: "Applications" }).click();
    await search("");
    await page.getByText("10,001 applications").waitFor();
  });

  const application = (name: string) => page.getByRole("link", { name, exact: true });
  const search = (text: string) => page.getByLabel("Search").fill(text);

  it("lists the newest first and renders only visible rows", async () => {
    await page.evaluate("scrollTo(0, 0)");
    await application("Bootstrap").waitFor();
    const table = page.getByRole("table", { name: "Applications" });
    expect(await table.getAttribute("aria-rowcount")).toBe(String(count + 2));
    const rows = table.getByRole("row");
    expect(await rows.nth(1).getAttribute("aria-rowindex")).toBe("2");
    expect(await rows.nth(1).textContent()).toContain("Bootstrap");
    expect(await rows.nth(2).textContent()).toContain("Service 9999");
    expect(await rows.count()).toBeLessThan(60);
    expect(await accessibilityViolations(page)).toEqual([]);
  });

  it("scrolls directly to the end", async () => {
    await page.evaluate("scrollTo(0, document.body.scrollHeight)");
    await application("Service 0").waitFor();
    const last = page.getByRole("row").last();
    expect(await last.getAttribute("aria-rowindex")).toBe(String(count + 2));
    expect(await page.getByRole("row").count()).toBeLessThan(60);
  });

  it("searches by name, filters by type and status, and keeps both in the URL", async () => {
    await search("SERVICE 77 ");
    await page.getByText("111 applications found").waitFor();
    await expectEventually(() => page.getByLabel("Search").inputValue(), "SERVICE 77 ");
    await choose(page, "Type", "public");
    await page.getByText("36 applications found").waitFor();
    await choose(page, "Status", "disabled");
    await page.getByText("No applications match").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await expectEventually(
      () => new URL(page.url()).search,
      "?search=SERVICE+77&type=public&status=disabled",
    );
    await choose(page, "Status", "all");
    const otherTab = await openSignedIn(browser, page.url(), root.key);
    await otherTab.page.getByText("36 applications found").waitFor();
    await expectEventually(() => otherTab.page.getByLabel("Search").inputValue(), "SERVICE 77");
    await otherTab.page.context().close();
  });

  it("keeps a filter chosen before the search starts", async () => {
    await search("SERVICE 77");
    await choose(page, "Type", "public");
    await page.getByText("36 applications found").waitFor();
  });

  it("finds an application by id", async () => {
    await search(seeded[4321]?.id ?? "");
    await page.getByText("1 application found").waitFor();
    await application("Service 4321").waitFor();
    await search("nothing of that name");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("10,001 applications").waitFor();
  });

  it("does not search for a key or put it in the URL", async () => {
    await search(root.key);
    await page.getByText("This looks like a key.").waitFor();
    await choose(page, "Type", "management");
    await page.getByText("3,334 applications found").waitFor();
    expect(page.url()).not.toContain("lk_");
  });

  it("shows cards on a small screen without horizontal scrolling", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await application("Service 9998").waitFor();
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
