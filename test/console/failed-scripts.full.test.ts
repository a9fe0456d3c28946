import { expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import { button, signIn, useConsole } from "../support/browser/console.js";
import { until } from "../support/until.js";

const parts = [
  "account-menu",
  "activity-page",
  "filter-popover",
  "sortable-rules",
  "section-form",
  "rotate-dialog",
];

const urlOf = (scripts: readonly string[]) => `**/assets/{${scripts}}-*.js`;

describeInBrowser("console parts whose scripts failed to load", (browser) => {
  const fixture = useConsole(browser);

  /** Opens a page and waits until it has requested all of these scripts in vain. */
  async function openWithout(
    scripts: readonly string[],
    respond: "abort" | "not found",
    path = "/overview",
  ): Promise<OpenedPage> {
    const { page, faults } = await browser.open(`${fixture.server.url}/healthz`);
    const failed = new Set<string>();
    await page.route(urlOf(scripts), (route) => {
      failed.add(route.request().url());
      return respond === "abort" ? route.abort() : route.fulfill({ status: 404 });
    });
    await page.goto(`${fixture.server.url}/console${path}`);
    await signIn({ page, faults }, fixture.root.key);
    await until(async () => failed.size === scripts.length);
    return { page, faults };
  }

  const openPage = (page: Page, name: string) =>
    page.getByRole("link", { name, exact: true }).first().click();

  it("load when they are used", async () => {
    const { page, faults } = await openWithout(parts, "abort");
    await page.unroute(urlOf(parts));

    await page.getByRole("button", { name: "Account" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).waitFor();
    await page.keyboard.press("Escape");
    await openPage(page, "Activity");
    await button(page, "Filter").click();
    await page.getByRole("combobox", { name: "Event" }).waitFor();
    await page.keyboard.press("Escape");
    await openPage(page, "Overview");
    await openPage(page, "New application");
    await button(page, "Add rule").click();
    await page.getByRole("list", { name: "Rules, in evaluation order" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("keep the page and its input, and say that they cannot be shown", async () => {
    const { page, faults } = await openWithout(parts, "not found");

    async function expectMessage(): Promise<void> {
      const message = page.getByText("This cannot be shown");
      await message.waitFor();
      await page.getByRole("button", { name: "Dismiss" }).click();
      await message.waitFor({ state: "detached" });
    }

    await page.getByRole("button", { name: "Account" }).click();
    await expectMessage();
    await openPage(page, "New application");
    await page.getByLabel("Name", { exact: true }).fill("Reports");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    await button(page, "Add rule").click();
    await expectMessage();
    await page.getByText("No rules yet.").waitFor();
    await button(page, "Create application").click();
    await page.getByRole("dialog", { name: "Store the key of “Reports”" }).waitFor();
    await button(page, "I have stored it").click();

    await button(page, "Rotate key").click();
    await expectMessage();
    await button(page, "Edit details").click();
    await expectMessage();
    await page.getByRole("heading", { name: "Reports", level: 1 }).waitFor();
    const { data } = await fixture.api.listApplications(fixture.root.key);
    expect(data.map(({ name }) => name)).toContain("Reports");
    expect(faults).toEqual([]);
  });

  it("say so even without the script for messages", async () => {
    const scripts = ["dialog-window", "toaster"];
    const path = `/applications/${fixture.root.applicationId}`;
    const { page, faults } = await openWithout(scripts, "not found", path);
    await button(page, "Rotate key").click();
    await page.getByRole("alert").getByText("This cannot be shown.").waitFor();
    await page.getByRole("heading", { level: 1, name: "Bootstrap" }).waitFor();
    expect(faults).toEqual([]);
  });
});
