import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect } from "@jest/globals";
import type { AxeResults } from "axe-core";
import type { Locator, Page } from "playwright-core";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { Api } from "../api/api.js";
import { createRestApi } from "../api/rest.js";
import { startServer, type TestServer } from "../service/server.js";
import { until } from "../until.js";
import type { OpenedPage, TestBrowser } from "./browser.js";

interface ConsoleFixture {
  readonly server: TestServer;
  /** The administrator of a tenant without other applications. */
  readonly root: BootstrapResult;
  readonly api: Api;
  /** Opens a page of the console and signs in, by default with the key of the administrator. */
  open(path: string, key?: string): Promise<OpenedPage>;
}

/** Starts a server with a tenant before the tests of a block, and stops it after them. */
export function useConsole(browser: TestBrowser): ConsoleFixture {
  let server: TestServer;
  let root: BootstrapResult;
  let api: Api;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
    api = createRestApi(server.url);
  });

  afterAll(async () => {
    api.close();
    await server.close();
  });

  return {
    get server() {
      return server;
    },
    get root() {
      return root;
    },
    get api() {
      return api;
    },
    open: (path, key = root.key) => openSignedIn(browser, `${server.url}/console${path}`, key),
  };
}

/** Opens a console page and signs in. */
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
  await menu(page).waitFor({ state: "attached" });
}

/** The links to the pages. Hidden on phones until it is opened. */
export const menu = (page: Page): Locator =>
  page.getByRole("navigation", { name: "Pages", includeHidden: true });

/** The horizontal overflow of a page in pixels. */
export function horizontalOverflow(page: Page): Promise<number> {
  return page.evaluate<number>("Math.max(0, document.documentElement.scrollWidth - innerWidth)");
}

export const button = (page: Page, name: string): Locator =>
  page.getByRole("button", { name, exact: true });

/** Chooses an option of a select, and waits until its list is closed. */
export async function choose(page: Page, select: string, option: string): Promise<void> {
  await page.getByRole("combobox", { name: select, exact: true }).click();
  const chosen = page.getByRole("option", { name: option, exact: true });
  await chosen.click();
  await chosen.waitFor({ state: "hidden" });
}

/** Chooses an action of the menu of an application. */
export async function chooseAction(page: Page, name: string): Promise<void> {
  await button(page, "More actions").click();
  await page.getByRole("menuitem", { name }).click();
}

export async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
}

/** Holds the requests to a URL until `release` is called. */
export async function holdRequests(page: Page, url: string): Promise<() => void> {
  let release = () => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(url, (route) => isReleased.then(() => route.continue()));
  return release;
}

/** Breaks the connection of calls that the service has executed, until the returned function is called. */
export async function loseResponses(page: Page, url: string): Promise<() => Promise<void>> {
  await page.route(url, async (route) => {
    await route.fetch();
    await route.abort();
  });
  return () => page.unroute(url);
}

/** Waits until a control has the focus. */
export const waitForFocus = (control: Locator): Promise<void> =>
  control.and(control.page().locator("*:focus")).waitFor();

/** Reads the new key from its dialog and closes it. The page must not store the key. */
export async function readNewKey({ page, faults }: OpenedPage): Promise<string> {
  const dialog = page.getByRole("dialog", { name: /^Store the key of/ });
  const key = (await dialog.getByTestId("new-key").textContent()) ?? "";
  for (const _ of [1, 2, 3]) {
    await page.keyboard.press("Escape");
  }
  await button(page, "I have stored it").click();
  await dialog.waitFor({ state: "detached" });
  expect(await page.content()).not.toContain(key);
  const stored = await page.evaluate<string>(
    "JSON.stringify([location.href, history.state, { ...localStorage }, { ...sessionStorage }, document.cookie])",
  );
  expect(stored).not.toContain("lk_");
  expect(faults).toEqual([]);
  return key;
}

/** Whether the service accepts a key from the shop's origin. */
export async function keyWorks({ url }: { readonly url: string }, key: string): Promise<boolean> {
  const headers = { "svc-api-key": key, origin: "https://shop.example.com" };
  return (await fetch(`${url}/whoami`, { headers })).ok;
}

/** Waits until a value equals the expected one. */
export async function expectEventually<T>(read: () => Promise<T> | T, expected: T): Promise<void> {
  const wanted = JSON.stringify(expected);
  await until(async () => JSON.stringify(await read()) === wanted, 60_000).catch(() => {});
  expect(await read()).toEqual(expected);
}

const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Lists accessibility violations with their locations. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  // The content security policy blocks other scripts. Evaluation by the debugger bypasses it.
  if (await page.evaluate<boolean>('typeof axe === "undefined"')) {
    await page.evaluate(`${axe}; undefined`);
  }
  const violations = await page.evaluate<AxeResults["violations"]>(
    'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)',
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target }) => `${id}: ${help} at ${target.join(" ")}`),
  );
}
