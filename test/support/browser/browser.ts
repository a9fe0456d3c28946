import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "@jest/globals";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";

/** Debian's headless shell needs fewer resources than Chromium. */
const names = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
];
const macPaths = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** The first Chrome or Chromium on PATH. */
function findBrowser(): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = [...names.flatMap((name) => folders.map((at) => join(at, name))), ...macPaths];
  return paths.find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A busy machine can exceed Playwright's default of 30 seconds. */
const timeout = 90_000;

export interface OpenedPage {
  readonly page: Page;
  /** Script errors, policy violations and requests to other hosts. */
  readonly faults: string[];
}

export interface TestBrowser {
  /** Opens a page in an isolated browser context, which is closed after the test. */
  open(url: string, options?: BrowserContextOptions): Promise<OpenedPage>;
  /** Opens another tab in the same context. */
  openTab(opened: OpenedPage, url: string): Promise<OpenedPage>;
}

/** Tests in a real browser. Skipped without one, unless REQUIRE_BROWSER=true. */
export function describeInBrowser(title: string, tests: (browser: TestBrowser) => void): void {
  const executablePath = findBrowser();
  if (executablePath === undefined && process.env.REQUIRE_BROWSER !== "true") {
    describe.skip(`${title} (not run: no Chrome or Chromium found)`, () => {
      tests({} as TestBrowser);
    });
    return;
  }
  describe(title, () => {
    let browser: Browser;
    /** The contexts of the current test. */
    let contexts: BrowserContext[] = [];

    beforeAll(async () => {
      if (executablePath === undefined) {
        throw new Error("No Chrome or Chromium on PATH. Install Debian's chromium-headless-shell.");
      }
      // The sandbox does not work as root, and the pages are our own.
      browser = await chromium.launch({
        executablePath,
        args: ["--no-sandbox", "--disable-gpu"],
        timeout,
      });
    });

    // Contexts that are opened before all tests stay.
    beforeEach(() => {
      contexts = [];
    });

    // An open page goes on to read lists and to render.
    afterEach(() => Promise.all(contexts.map((context) => context.close())));

    afterAll(() => browser?.close());

    tests({
      async open(url, options) {
        const context = await browser.newContext({
          viewport: { width: 1280, height: 800 },
          // Otherwise colors are measured while they fade.
          reducedMotion: "reduce",
          ...options,
        });
        contexts.push(context);
        context.setDefaultTimeout(timeout);
        return goTo(await context.newPage(), url);
      },
      openTab: async ({ page }, url) => goTo(await page.context().newPage(), url),
    });
  });
}

async function goTo(page: Page, url: string): Promise<OpenedPage> {
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // Refused calls are part of the tests.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      faults.push(`console: ${message.text()}`);
    }
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) {
      faults.push(`request to another host: ${request.url()}`);
    }
  });
  await page.goto(url);
  return { page, faults };
}
