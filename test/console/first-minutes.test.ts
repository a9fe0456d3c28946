import { spawn } from "node:child_process";
import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  signIn,
  waitForFocus,
} from "../support/browser/console.js";
import { killWithParent } from "../support/service/child-process.js";
import { captureOutput, withTempFolder } from "../support/service/run-latchkey.js";
import { firstKeyPattern, listeningPattern } from "../support/service/service-process.js";

/** Runs `npm start` with an empty data folder. */
async function withStartedService(use: (url: string, firstKey: string) => Promise<void>) {
  await withTempFolder(async (DATA_DIR) => {
    // Without the build: these tests have a build, which others use now.
    const child = spawn("npm", ["start", "--ignore-scripts"], {
      env: { PATH: process.env.PATH, HOME: DATA_DIR, HOST: "127.0.0.1", PORT: "0", DATA_DIR },
      // A separate process group, because npm starts another process.
      detached: true,
    });
    killWithParent(child, { group: true });
    const service = captureOutput(child);
    const [, url = ""] = await service.until(listeningPattern);
    const [firstKey] = await service.until(firstKeyPattern);
    await use(url, firstKey);
    process.kill(-(child.pid as number), "SIGTERM");
    await service.ended();
  });
}

describeInBrowser("first minutes", (browser) => {
  it("lead from `npm start` to an authorized session without a command", () =>
    withStartedService(async (url, firstKey) => {
      const opened = await browser.open(url);
      const { page, faults } = opened;
      await signIn(opened, firstKey);
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
      await steps.getByRole("link", { name: "New private application" }).waitFor();
      await page.getByRole("link", { name: "3 enabled" }).waitFor();
      await page.getByRole("link", { name: "1 public" }).click();
      await page.getByText("1 application").first().waitFor();
      expect(page.url()).toContain("/applications?type=public");
      await page.getByRole("link", { name: "Overview" }).click();
      await steps.getByRole("link", { name: "New public application" }).click();
      await waitForFocus(page.getByRole("textbox", { name: "Name" }));
      expect(await page.getByRole("radio", { name: "public" }).isChecked()).toBe(true);
      expect(faults).toEqual([]);
    }));
});
