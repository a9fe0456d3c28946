import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser } from "../support/browser/browser.js";
import { signIn, useConsole } from "../support/browser/console.js";

const hour = 3_600_000;
const day = 24 * hour;

describeInBrowser("times in the console", (browser) => {
  const fixture = useConsole(browser);

  it.each([
    ["an hour behind", -hour],
    ["an hour ahead", hour],
  ])("ignores a browser clock that is %s", async (name, offset) => {
    const opened = await browser.open(`${fixture.server.url}/console/applications`);
    const { page } = opened;
    await page.clock.install({ time: Date.now() + offset });
    await page.reload();
    await signIn(opened, fixture.root.key);
    await page.getByRole("heading", { name: "Applications" }).waitFor();
    fixture.server.clock.advance(Date.now() - fixture.server.clock.now());
    const expiresAt = Date.now() + 30 * day;
    const created = await fixture.api.createApplication(fixture.root.key, {
      name,
      type: "public",
      permissions: ["token:create"],
      expiresAt: timestampFromMs(expiresAt),
    });
    const row = page.getByRole("row", { name });
    await row.getByText("just now").waitFor();
    await row.getByText(/^\d seconds ago$/).waitFor();
    const shown = await page.evaluate<string>(
      `new Date(${expiresAt}).toLocaleString("en-US", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })`,
    );
    await row.getByText(`${shown}, in 30 days`).waitFor();

    await fixture.api.createSession(keyOf(created));
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page
      .getByRole("row", { name })
      .getByText(/^in 2:5\d$/)
      .waitFor();
    expect(opened.faults).toEqual([]);
  });

  it("shows a time ahead of the clock of the service as just now", async () => {
    fixture.server.clock.advance(Date.now() + 6_000 - fixture.server.clock.now());
    await fixture.api.createApplication(fixture.root.key, {
      name: "By a fast database",
      type: "private",
      permissions: ["token:read"],
    });
    const opened = await browser.open(`${fixture.server.url}/console/applications`);
    await signIn(opened, fixture.root.key);
    const row = opened.page.getByRole("row", { name: "By a fast database" });
    await row.getByText("just now").waitFor();
    await row.getByRole("link").click();
    await opened.page.getByRole("definition").filter({ hasText: "just now by" }).waitFor();
    expect(await opened.page.locator("body").textContent()).not.toMatch(/in \d+ second/);
  });
});
