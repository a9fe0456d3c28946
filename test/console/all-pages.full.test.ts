import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  horizontalOverflow,
  menu,
  openSignedIn,
  waitForFocus,
} from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type DemoTenant, seedDemoTenant } from "./seed.js";

/** Set by `npm run docs:images`, which saves screenshots. */
const shouldSaveScreenshots = process.env.UPDATE_DOCS === "1";
const imageFolder = "docs/images";

const phone = { width: 360, height: 740 };
const largeScreen = { width: 1440, height: 900 };

describeInBrowser("every console page", (browser) => {
  let server: TestServer;
  let demo: DemoTenant;
  let opened: OpenedPage;

  beforeAll(async () => {
    server = await startServer();
    demo = await seedDemoTenant(server);
    opened = await browser.open(`${server.url}/console/`);
    await opened.page.getByLabel("API key").fill(demo.key);
    await opened.page.getByLabel("Remember until this tab is closed").check();
    await opened.page.getByRole("button", { name: "Sign in" }).click();
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  afterAll(() => server.close());

  const pages: [
    name: string,
    path: () => string,
    waitUntilLoaded: (page: Page) => Promise<void>,
  ][] = [
    ["overview", () => "/overview", waitForText("Recent activity")],
    ["me", () => "/me", waitForText("Permissions")],
    ["applications", () => "/applications", waitForText("Storefront")],
    ["application", () => `/applications/${demo.shopId}`, waitForText("svc-4711")],
    ["application-new", () => "/applications/new", waitForText("Permissions")],
    ["application-edit", () => `/applications/${demo.backendId}`, editPermissions],
    ["sessions", () => "/sessions", waitForText("Storefront")],
    ["try-a-session", () => "/sessions/try", waitForText("Create two applications")],
    ["why", () => `/why?application=${demo.backendId}`, checkAccess],
    ["activity", () => "/activity", waitForText("Storefront")],
  ];

  /** What users open on the pages. */
  const states: typeof pages = [
    ["decision for a session", () => `/why?session=${demo.sessionId}`, checkSession],
    ["filters", () => "/applications", openFilters],
    ["event", () => "/activity", openEvent],
    ["palette", () => "/me", openPalette],
    ["shortcuts", () => "/me", openShortcuts],
    ["unknown page", () => "/unknown", waitForText("There is no page at this address")],
    ["new key", () => `/applications/${demo.backendId}`, rotateKey],
  ];

  it("is accessible in light and dark mode, on a phone and on a large screen: sign-in", async () => {
    const signedOut = await browser.open(`${server.url}/console/`, { viewport: largeScreen });
    await signedOut.page.getByLabel("API key").waitFor();
    await inspect(signedOut, "sign-in");
  });

  it.each(pages)(
    "is accessible in light and dark mode, on a phone and on a large screen: %s",
    async (name, path, waitUntilLoaded) => {
      await goTo(path());
      await waitUntilLoaded(opened.page);
      await inspect(opened, name);
    },
  );

  it.each(states)(
    "is accessible in light and dark mode, on a phone and on a large screen: %s",
    async (_name, path, open) => {
      await goTo(path());
      await open(opened.page);
      await inspect(opened);
    },
  );

  it("is accessible in light and dark mode, on a phone and on a large screen: new tenant", async () => {
    const { key } = await server.createTenant();
    const first = await openSignedIn(browser, `${server.url}/console/`, key);
    await first.page.getByRole("region", { name: "Getting started" }).waitFor();
    await inspect(first);
    await first.page.getByRole("link", { name: "Start the guided demo" }).click();
    await button(first.page, "Run all steps").click();
    await first.page.getByRole("region", { name: "Done", exact: true }).waitFor();
    await inspect(first);
  });

  async function goTo(path: string): Promise<void> {
    const { page } = opened;
    await page.setViewportSize(largeScreen);
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(`${server.url}/console${path}`);
    // The sign-in with the stored key has a heading too.
    await menu(page).waitFor({ state: "attached" });
    await page.getByRole("heading", { level: 1 }).waitFor();
  }

  /** Saves a screenshot if it has a name. */
  async function inspect({ page, faults }: OpenedPage, name?: string): Promise<void> {
    await screenshot(page, name);
    const found: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [phone, largeScreen]) {
        await page.setViewportSize(size);
        const violations = await accessibilityViolations(page);
        found.push(
          ...violations.map((violation) => `${colorScheme}, ${size.width} px: ${violation}`),
        );
        expect(await horizontalOverflow(page)).toBe(0);
      }
    }
    if (name === "application") {
      await screenshot(page, `${name}-dark`);
      await page.setViewportSize(phone);
      await screenshot(page, `${name}-phone`);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
  }

  async function screenshot(page: Page, name: string | undefined): Promise<void> {
    if (shouldSaveScreenshots && name !== undefined) {
      await page.screenshot({ path: `${imageFolder}/console-${name}.png` });
    }
  }
});

/** Waits until the page shows a text. */
function waitForText(text: string): (page: Page) => Promise<void> {
  return (page) => page.getByText(text).first().waitFor();
}

async function editPermissions(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Edit permissions" }).click();
  await page.getByRole("button", { name: "Edit rule 1" }).waitFor();
}

/** Checks whether the application may read a card. */
async function checkAccess(page: Page): Promise<void> {
  await page.getByRole("combobox", { name: "Permission" }).fill("token:read");
  await page.getByLabel("Container").fill("/pci/high/");
  await page.getByText("Cards, masked").first().waitFor();
}

async function checkSession(page: Page): Promise<void> {
  await page.getByRole("combobox", { name: "Permission" }).fill("token:read");
  await page.getByLabel("Container").fill("/pci/high/");
  await page.getByRole("status").filter({ hasText: "Allowed" }).waitFor();
}

async function openFilters(page: Page): Promise<void> {
  await button(page, "Filter").click();
  await page.getByRole("combobox", { name: "Type", exact: true }).waitFor();
}

async function openEvent(page: Page): Promise<void> {
  await page.getByRole("row").nth(1).getByRole("link").click();
  await page.getByRole("dialog").waitFor();
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await waitForFocus(page.getByRole("combobox", { name: "Search" }));
}

async function openShortcuts(page: Page): Promise<void> {
  await page.keyboard.type("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
}

async function rotateKey(page: Page): Promise<void> {
  await button(page, "Rotate key").click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
  await page.getByRole("region", { name: "Try the key" }).getByRole("tab").first().waitFor();
}
