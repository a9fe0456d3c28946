import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import { accessibilityViolations, horizontalOverflow } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type DemoTenant, seedDemoTenant } from "./demo-tenant.js";

/** Set by `npm run docs:images`, which saves screenshots. */
const savesScreenshots = process.env.UPDATE_DOCS === "1";
const folder = "docs/images";

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
    await opened.page.getByRole("heading", { level: 1, name: "My key" }).waitFor();
  });

  afterAll(() => server.close());

  const pages: [name: string, path: () => string, untilLoaded: (page: Page) => Promise<void>][] = [
    ["me", () => "/me", showing("Permissions")],
    ["applications", () => "/applications", showing("Storefront")],
    ["application", () => `/applications/${demo.shopId}`, showing("Keys")],
    ["application-new", () => "/applications/new", showing("Permissions")],
    ["application-edit", () => `/applications/${demo.backendId}/edit`, showing("Cards, masked")],
    ["sessions", () => "/sessions", showing("Storefront")],
    ["try-a-session", () => "/sessions/try", showing("public key")],
    ["why", () => `/why?application=${demo.backendId}`, checkingAccess],
    ["activity", () => "/activity", showing("Storefront")],
  ];

  it("sign-in is accessible in light and dark mode, on a phone and on a large screen", async () => {
    const signedOut = await browser.open(`${server.url}/console/`);
    await signedOut.page.getByLabel("API key").waitFor();
    await inspect(signedOut, "sign-in");
  });

  it.each(pages)(
    "%s is accessible in light and dark mode, on a phone and on a large screen",
    async (name, path, untilLoaded) => {
      const { page } = opened;
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: "light" });
      await page.goto(`${server.url}/console${path()}`);
      await untilLoaded(page);
      await inspect(opened, name);
    },
  );

  async function inspect({ page, faults }: OpenedPage, name: string): Promise<void> {
    await screenshot(page, name);
    const found: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [360, 1920]) {
        await page.setViewportSize({ width, height: 800 });
        const barriers = await accessibilityViolations(page);
        found.push(...barriers.map((barrier) => `${colorScheme}, ${width} px: ${barrier}`));
        expect(await horizontalOverflow(page)).toBe(0);
      }
    }
    if (name === "application") {
      await page.setViewportSize({ width: 1280, height: 800 });
      await screenshot(page, `${name}-dark`);
      await page.setViewportSize({ width: 360, height: 740 });
      await screenshot(page, `${name}-phone`);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
  }

  async function screenshot(page: Page, name: string): Promise<void> {
    if (savesScreenshots) {
      await page.screenshot({ path: `${folder}/console-${name}.png` });
    }
  }
});

/** Waits until the page shows a text. */
function showing(text: string): (page: Page) => Promise<void> {
  return (page) => page.getByText(text).first().waitFor();
}

/** Checks whether the application may read a card. */
async function checkingAccess(page: Page): Promise<void> {
  await page.getByLabel("Permission").fill("token:read");
  await page.getByLabel("Container").fill("/pci/high/");
  await page.getByText("Cards, masked").first().waitFor();
}
