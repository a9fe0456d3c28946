import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { barriersIn } from "../support/axe.js";
import { describeInBrowser, type OpenedPage } from "../support/browser.js";
import { sidewaysIn } from "../support/console.js";
import { type DemoTenant, furnish } from "../support/demo-tenant.js";
import { startServer, type TestServer } from "../support/server.js";

/** Set by `npm run docs:images`, which keeps what it sees. */
const keepsPictures = process.env.UPDATE_DOCS === "1";
const pictures = "docs/images";

describeInBrowser("every page of the console", (browser) => {
  let server: TestServer;
  let demo: DemoTenant;
  let opened: OpenedPage;

  beforeAll(async () => {
    server = await startServer();
    demo = await furnish(server);
    opened = await browser.open(`${server.url}/console/`);
    await opened.page.getByLabel("API key").fill(demo.key);
    await opened.page.getByLabel("Keep it until this tab is closed").check();
    await opened.page.getByRole("button", { name: "Sign in" }).click();
    await opened.page.getByRole("heading", { level: 1, name: "My key" }).waitFor();
  });

  afterAll(() => server.close());

  const pages: [name: string, path: () => string, whenThere: (page: Page) => Promise<void>][] = [
    ["me", () => "/me", seeing("What it may do")],
    ["applications", () => "/applications", seeing("Storefront")],
    ["application", () => `/applications/${demo.shopId}`, seeing("Keys")],
    ["application-new", () => "/applications/new", seeing("Permissions")],
    ["application-edit", () => `/applications/${demo.backendId}/edit`, seeing("Cards, masked")],
    ["sessions", () => "/sessions", seeing("Storefront")],
    ["try-a-session", () => "/sessions/try", seeing("public key")],
    ["why", () => `/why?application=${demo.backendId}`, askingWhy],
    ["activity", () => "/activity", seeing("Storefront")],
  ];

  it("sign-in has no barriers, light or dark, on a phone or a large screen", async () => {
    const stranger = await browser.open(`${server.url}/console/`);
    await stranger.page.getByLabel("API key").waitFor();
    await lookAt(stranger, "sign-in");
  });

  it.each(pages)(
    "%s has no barriers, light or dark, on a phone or a large screen",
    async (name, path, whenThere) => {
      const { page } = opened;
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: "light" });
      await page.goto(`${server.url}/console${path()}`);
      await whenThere(page);
      await lookAt(opened, name);
    },
  );

  async function lookAt({ page, faults }: OpenedPage, name: string): Promise<void> {
    await keep(page, name);
    const found: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [360, 1920]) {
        await page.setViewportSize({ width, height: 800 });
        const barriers = await barriersIn(page);
        found.push(...barriers.map((barrier) => `${colorScheme}, ${width} px: ${barrier}`));
        expect(await sidewaysIn(page)).toBe(0);
      }
    }
    if (name === "application") {
      await page.setViewportSize({ width: 1280, height: 800 });
      await keep(page, `${name}-dark`);
      await page.setViewportSize({ width: 360, height: 740 });
      await keep(page, `${name}-phone`);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
  }

  async function keep(page: Page, name: string): Promise<void> {
    if (keepsPictures) {
      await page.screenshot({ path: `${pictures}/console-${name}.png` });
    }
  }
});

/** Waits until a page shows what it is about. */
function seeing(text: string): (page: Page) => Promise<void> {
  return (page) => page.getByText(text).first().waitFor();
}

/** Asks whether the application of the page may read a card. */
async function askingWhy(page: Page): Promise<void> {
  await page.getByLabel("Permission").fill("token:read");
  await page.getByLabel("Container").fill("/pci/high/");
  await page.getByText("Cards, masked").first().waitFor();
}
