import type { Page } from "playwright-core";
import type { OpenedPage, TestBrowser } from "./browser.js";

/** Opens a page of the console and signs in there. */
export async function openSignedIn(
  browser: TestBrowser,
  url: string,
  key: string,
): Promise<OpenedPage> {
  const opened = await browser.open(url);
  await signIn(opened, key);
  return opened;
}

export async function signIn({ page }: OpenedPage, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** How many pixels of a page are beside its window. */
export function sidewaysIn(page: Page): Promise<number> {
  return page.evaluate<number>("Math.max(0, document.documentElement.scrollWidth - innerWidth)");
}
