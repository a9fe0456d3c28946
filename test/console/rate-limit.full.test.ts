import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  expectEventually,
  horizontalOverflow,
  signOut,
  useConsole,
} from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";

const notice = "Too many calls. Trying again in";
const announced = "Too many calls. The console tries again by itself.";

describeInBrowser("console whose calls are refused with 429", (browser) => {
  const fixture = useConsole(browser);
  /** A service on the same store that has no calls left for up to a minute. */
  let limited: TestServer;

  beforeAll(async () => {
    limited = await startServer("lmdb", {
      store: fixture.server.store,
      environment: { RATE_LIMIT_MANAGEMENT: "1/m:1" },
    });
  });

  const useUpCalls = () =>
    fetch(`${limited.url}/whoami`, { headers: { "svc-api-key": fixture.root.key } });

  afterAll(() => limited.close());

  /** Sends the calls of a method to the limited service, until the returned function is called. */
  async function limit({ page }: OpenedPage, method: string) {
    const calls: (string | undefined)[] = [];
    const url = `**/${method}`;
    await page.route(url, async (route) => {
      const request = route.request();
      calls.push(request.headers()["idempotency-key"]);
      const { pathname } = new URL(request.url());
      await useUpCalls();
      await route.fulfill({ response: await route.fetch({ url: `${limited.url}${pathname}` }) });
    });
    return { calls, release: () => page.unroute(url) };
  }

  const announcements = (page: Page) => page.evaluate<number>("window.announcements");

  it("counts down, and repeats a read when the user says so", async () => {
    const opened = await fixture.open("/overview");
    const { page } = opened;
    const { calls, release } = await limit(opened, "ListApplications");
    await page.evaluate(`{
      window.announcements = 0;
      const region = document.querySelector(".rate-limit-notice [role=status]");
      new MutationObserver(() => window.announcements++).observe(region, { childList: true, characterData: true, subtree: true });
    }`);
    await page.getByRole("link", { name: "Applications", exact: true }).click();
    await page.getByText(notice).waitFor();
    expect(await page.getByRole("status").filter({ hasText: announced }).count()).toBe(1);
    const read = () => page.getByRole("timer").textContent();
    const before = await read();
    await expectEventually(async () => (await read()) !== before, true);
    expect(await announcements(page)).toBe(1);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });

    const refused = calls.length;
    await button(page, "Try now").click();
    await expectEventually(() => calls.length > refused, true);
    await page.getByText(notice).waitFor();
    await release();
    await button(page, "Try now").click();
    await page.getByRole("link", { name: "Bootstrap", exact: true }).waitFor();
    await page.getByText(notice).waitFor({ state: "detached" });
    expect(opened.faults).toEqual([]);
  });

  it("repeats a change by itself, in its dialog, and makes it once", async () => {
    const { api, root } = fixture;
    const { id } = await api.createApplication(root.key, {
      name: "Reports",
      type: "private",
      permissions: ["token:read"],
    });
    const opened = await fixture.open(`/applications/${id}`);
    const { page } = opened;
    const { calls, release } = await limit(opened, "RegenerateApplicationKey");
    await button(page, "Rotate key").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Rotate key" }).click();
    await dialog.getByText(notice).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Try now" }).click();
    await expectEventually(() => calls.length, 2);
    await dialog.getByText(notice).waitFor();
    await release();
    // Nobody presses a button: the delay is at most a minute.
    await page.getByTestId("new-key").waitFor();
    expect(new Set(calls).size).toBe(1);
    expect(calls[0]).toMatch(/^[0-9a-f]{32}$/);
    expect((await api.listApplicationKeys(root.key, { id })).data).toHaveLength(2);
  });

  it("shows the error of a canceled call", async () => {
    const opened = await fixture.open("/applications");
    const { page } = opened;
    const { calls } = await limit(opened, "CreateApplication");
    await page.getByRole("link", { name: "New application" }).click();
    await page.getByLabel("Name").fill("Never created");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    await button(page, "Create application").click();
    await page.getByText(notice).waitFor();
    await button(page, "Stop retrying").click();
    await page.getByText(notice).waitFor({ state: "detached" });
    await page.getByRole("alert").filter({ hasText: "Retry in" }).waitFor();
    expect(calls).toHaveLength(1);
  });

  it("forgets waiting calls at the sign-out", async () => {
    const opened = await fixture.open("/applications");
    const { page } = opened;
    const { calls } = await limit(opened, "ListApplicationKeys");
    await page.getByRole("link", { name: "Bootstrap", exact: true }).click();
    await page.getByText(notice).waitFor();
    await signOut(page);
    await page.getByLabel("API key").waitFor();
    await page.getByText(notice).waitFor({ state: "detached" });
    expect(calls).toHaveLength(1);
  });
});
