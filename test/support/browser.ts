import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Debian's headless shell takes less of the machine than its whole Chromium. */
const names = [
  "chromium-headless-shell",
  ...["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"],
];
const macPaths = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** The first Chrome or Chromium of this machine. */
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

/** Playwright gives up after 30 seconds by itself, which a busy machine can take. */
const ceiling = 100_000;

/** What a browser showed that no page should do. */
export interface OpenedPage {
  readonly page: Page;
  /** Errors of its scripts, refusals of its policy, and requests to any other host. */
  readonly faults: string[];
}

export interface TestBrowser {
  /** Opens a page in a window of its own, which shares nothing with others. */
  open(url: string, options?: BrowserContextOptions): Promise<OpenedPage>;
  /** Another tab of the same window. */
  openBeside(opened: OpenedPage, url: string): Promise<OpenedPage>;
}

/**
 * Tests in a real browser. A machine without one skips them, unless
 * REQUIRE_BROWSER=true, which makes that a failure.
 */
export function describeInBrowser(title: string, tests: (browser: TestBrowser) => void): void {
  const executablePath = findBrowser();
  if (executablePath === undefined && process.env.REQUIRE_BROWSER !== "true") {
    describe.skip(`${title} (not run: this machine has no Chrome or Chromium)`, () => {
      tests({} as TestBrowser);
    });
    return;
  }
  describe(title, () => {
    let browser: Browser;

    beforeAll(async () => {
      if (executablePath === undefined) {
        throw new Error(
          "There is no Chrome or Chromium on PATH: install Debian's chromium-headless-shell.",
        );
      }
      // The sandbox of Chromium cannot be used by root, and these pages are our own.
      browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: ceiling });
    });

    afterAll(() => browser?.close());

    tests({
      async open(url, options) {
        const context = await browser.newContext({
          viewport: { width: 1280, height: 800 },
          ...options,
        });
        context.setDefaultTimeout(ceiling);
        return goTo(await context.newPage(), url);
      },
      openBeside: async ({ page }, url) => goTo(await page.context().newPage(), url),
    });
  });
}

async function goTo(page: Page, url: string): Promise<OpenedPage> {
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // The answers that the service refuses with are part of what is tested.
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
