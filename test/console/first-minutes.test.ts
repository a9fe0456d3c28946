import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import { accessibilityViolations, button, signIn } from "../support/browser/console.js";
import { useService } from "../support/service/service-process.js";

describeInBrowser("first minutes", (browser) => {
  const service = useService();

  it("leads from the first key to an authorized session without a command", async () => {
    const opened = await browser.open(service.url);
    const { page, faults } = opened;
    await signIn(opened, service.firstKey);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.getByRole("listitem").filter({ hasText: "Applications1" }).waitFor();
    await page.getByText("responding", { exact: true }).nth(1).waitFor();
    await page.getByRole("tab", { name: "Python" }).first().click();
    await page.getByText("urllib.request").first().waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.getByRole("link", { name: "Start the guided demo" }).click();
    await button(page, "Run all steps").click();
    await page.getByRole("link", { name: "See it in Sessions" }).click();
    const session = page.getByRole("dialog", { name: "Session" });
    await session.getByText("authorized", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await session.waitFor({ state: "detached" });

    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("listitem").filter({ hasText: "Open sessions1" }).waitFor();
    // The temporary applications of the demo do not complete the other steps.
    const steps = page.getByRole("region", { name: "Getting started" }).getByRole("listitem");
    await steps.filter({ hasText: "See a session" }).getByLabel("Done").waitFor();
    expect(await steps.getByLabel("Done").count()).toBe(1);
    await page.getByRole("link", { name: "3 enabled" }).waitFor();
    await page.getByRole("link", { name: "1 public" }).click();
    await page.getByText("1 application").first().waitFor();
    expect(page.url()).toContain("/applications?type=public");
    expect(faults).toEqual([]);
  });
});
