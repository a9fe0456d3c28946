import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import { button, chooseAction, horizontalOverflow, menu } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type LongTenant, seedLongContent } from "./long-content.js";
import { unreadableTexts } from "./unreadable-texts.js";

const widths = [360, 390, 600, 768, 820, 900, 1024, 1152, 1280, 1440];

/** The narrowest first column of a table. Ids of sessions are short. */
const minNameWidth = 90;

/** A browser expression for the width of the first column of each table. */
const nameWidths = `[...document.querySelectorAll(".data-table tbody tr:first-child")].map((row) =>
  Math.round(row.querySelector("td[data-title]").getBoundingClientRect().width))`;

describeInBrowser("console at every screen width, with long texts", (browser) => {
  let server: TestServer;
  let tenant: LongTenant;
  let opened: OpenedPage;

  beforeAll(async () => {
    server = await startServer();
    tenant = await seedLongContent(server);
    opened = await browser.open(`${server.url}/console/`);
    const { page } = opened;
    await page.getByLabel("API key").fill(tenant.key);
    await page.getByLabel("Remember until this tab is closed").check();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  afterAll(() => server.close());

  const pages: [name: string, path: () => string, open: (page: Page) => Promise<void>][] = [
    ["overview", () => "/overview", showText("Recent activity")],
    ["me", () => "/me", showText("Permissions")],
    ["applications", () => "/applications", showText("Reports")],
    ["applications that expire", () => "/applications?view=expiring", showText("1 application")],
    ["unused applications", () => "/applications?view=unused", showText("in use or new")],
    [
      "filtered applications",
      () => `/applications?createdBy=${tenant.privateId}&status=enabled&type=public`,
      showText("No applications match"),
    ],
    ["filter fields", () => "/applications", press("Filter", "External ID")],
    ["selected applications", () => "/applications", selectAll],
    ["bulk deletion", () => "/applications", bulkDelete],
    ["public application", () => `/applications/${tenant.publicId}`, showText("Open sessions")],
    ["private application", () => `/applications/${tenant.privateId}`, showText("Revoke key")],
    ["edited details", () => `/applications/${tenant.privateId}`, press("Edit details", "Save")],
    [
      "edited permissions",
      () => `/applications/${tenant.privateId}`,
      press("Edit permissions", "Save"),
    ],
    [
      "edited restrictions",
      () => `/applications/${tenant.publicId}`,
      press("Edit restrictions", "Save"),
    ],
    ["edited metadata", () => `/applications/${tenant.publicId}`, press("Edit metadata", "Save")],
    [
      "rotation",
      () => `/applications/${tenant.privateId}`,
      press("Rotate key", "Custom grace period"),
    ],
    ["deletion", () => `/applications/${tenant.publicId}`, openAction("Delete")],
    ["disabling", () => `/applications/${tenant.publicId}`, openAction("Disable")],
    ["new application", () => "/applications/new", showText("Permissions")],
    ["sessions", () => "/sessions", showText("4 open sessions")],
    ["session", () => `/sessions?session=${tenant.sessionId}`, showText("Authorized by")],
    ["try a session", () => "/sessions/try", showText("Create two applications")],
    ["access check", () => `/why?application=${tenant.privateId}`, checkAccess],
    ["activity", () => "/activity", showText("created by")],
    ["denials", () => "/activity?outcome=denied", showText("denied")],
    ["event", () => "/activity", openEvent],
    ["palette", () => "/me", openPalette],
    ["unknown page", () => "/unknown", showText("There is no page at this address")],
  ];

  it.each(pages)("fits and shows every text: %s", async (_name, path, open) => {
    const { page, faults } = opened;
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${server.url}/console${path()}`);
    await menu(page).waitFor({ state: "attached" });
    // A dialog hides the heading.
    await page.getByRole("heading", { level: 1, includeHidden: true }).waitFor();
    await open(page);
    const found: Record<number, unknown> = {};
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await horizontalOverflow(page);
      const unreadable = await unreadableTexts(page);
      const names = await page.evaluate<number[]>(nameWidths);
      if (overflow > 0 || unreadable.length > 0 || names.some((one) => one < minNameWidth)) {
        found[width] = { overflow, unreadable, names };
      }
    }
    expect(found).toEqual({});
    expect(faults).toEqual([]);
  });

  it("fits and shows every text: sign-in", async () => {
    const { page } = await browser.open(`${server.url}/console/`);
    await page.getByLabel("API key").waitFor();
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      expect(await horizontalOverflow(page)).toBe(0);
      expect(await unreadableTexts(page)).toEqual([]);
    }
  });
});

function showText(text: string): (page: Page) => Promise<void> {
  return (page) => page.getByText(text).first().waitFor();
}

/** Presses a button and waits for a text of what it opens. */
function press(name: string, text: string): (page: Page) => Promise<void> {
  return async (page) => {
    await button(page, name).click();
    await page.getByText(text, { exact: true }).first().waitFor();
  };
}

function openAction(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await chooseAction(page, name);
    await page.getByRole("dialog").waitFor();
  };
}

async function selectAll(page: Page): Promise<void> {
  await page.getByLabel("Select all").click();
  await page.getByRole("region", { name: "Selection" }).waitFor();
}

async function bulkDelete(page: Page): Promise<void> {
  await selectAll(page);
  await button(page, "Delete").click();
  await page.getByRole("dialog").waitFor();
}

async function checkAccess(page: Page): Promise<void> {
  await page.getByRole("combobox", { name: "Permission" }).fill("session:read");
  await page
    .getByRole("status")
    .filter({ hasText: /Allowed|Denied/ })
    .waitFor();
}

async function openEvent(page: Page): Promise<void> {
  await page.getByRole("row").nth(1).getByRole("link").click();
  await page.getByRole("dialog").waitFor();
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill("Pay");
  await page.getByRole("option").first().waitFor();
}
