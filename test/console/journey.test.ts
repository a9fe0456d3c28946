import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  chooseAction,
  expectEventually,
  horizontalOverflow,
  keyWorks,
  readNewKey,
  signIn,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console journey", (browser) => {
  const fixture = useConsole(browser);

  const isValidKey = (key: string) => keyWorks(fixture.server, key);

  it("signs in, then creates, edits, rotates, disables and deletes an application", async () => {
    const opened = await browser.open(`${fixture.server.url}/console/applications`);
    expect(await accessibilityViolations(opened.page)).toEqual([]);
    await signIn(opened, fixture.root.key);
    const { page, faults } = opened;
    const rotate = async (choice: string) => {
      await button(page, "Rotate key").click();
      await page.getByLabel(choice).check();
      await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
      return readNewKey(opened);
    };
    const save = async (section: string) => {
      await button(page, "Save").click();
      await page.getByText(`${section} saved`).waitFor();
      await waitForFocus(button(page, `Edit ${section.toLowerCase()}`));
    };

    await page.getByRole("link", { name: "New application" }).click();
    await page.getByLabel("Name").fill("Web shop");
    await page.getByLabel("public").check();
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:create");
    await page.getByRole("combobox", { name: "Direct permissions" }).press("Enter");
    await button(page, "Add rule").click();
    await page.getByLabel("Container").fill("/pci/");
    await page.getByRole("combobox", { name: "Permissions of the rule" }).fill("token:read ");
    await page.getByLabel("Origins").fill("https://shop.example.com");
    await page.getByLabel("After a number of days").check();
    await page.getByLabel("Days from now").fill("90");
    expect(await accessibilityViolations(page)).toEqual([]);
    await button(page, "Create application").click();
    await page.getByTestId("new-key").waitFor();
    await page.getByText("It belongs in your website or app").waitFor();
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByText("import os").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    const first = await readNewKey(opened);

    await page.getByRole("heading", { name: "Web shop" }).waitFor();
    await page.getByRole("region", { name: "Details" }).getByText(", in 90 days").waitFor();
    await page.getByText("Web shop was created by").waitFor();
    const { data } = await fixture.api.listApplications(fixture.root.key, { namePrefix: "web" });
    expect(data).toMatchObject([
      {
        type: "public",
        permissions: ["token:create"],
        rules: [{ priority: 1, container: "/pci/", permissions: ["token:read"] }],
        allowedOrigins: ["https://shop.example.com"],
      },
    ]);
    expect(await isValidKey(first)).toBe(true);
    await page.getByText(`${first.slice(0, 7)}…${first.slice(25, 29)}`).waitFor();

    await button(page, "Edit details").click();
    await page.getByLabel("Name").fill("Web shop 2");
    await save("Details");
    await page.getByRole("heading", { name: "Web shop 2" }).waitFor();
    await button(page, "Edit permissions").click();
    await button(page, "Remove token:create").click();
    await waitForFocus(page.getByRole("combobox", { name: "Direct permissions" }));
    await save("Permissions");
    await button(page, "Edit restrictions").click();
    await page.getByLabel("Origins").fill("");
    await save("Restrictions");
    const { data: changed } = await fixture.api.listApplications(fixture.root.key, {
      namePrefix: "web",
    });
    expect(changed).toMatchObject([{ name: "Web shop 2", permissions: [], allowedOrigins: [] }]);
    await page.getByText("Web shop 2 was updated by").first().waitFor();

    // The activity may show the same expiry.
    const inSevenDays = page.getByRole("region", { name: "Keys" }).getByText("in 7 days");
    const second = await rotate("Valid for 7 more days");
    await inSevenDays.waitFor();
    expect([await isValidKey(first), await isValidKey(second)]).toEqual([true, true]);
    const third = await rotate("Revoke all current keys now");
    await inSevenDays.waitFor({ state: "detached" });
    expect([await isValidKey(first), await isValidKey(second)]).toEqual([false, false]);
    expect(await isValidKey(third)).toBe(true);

    await chooseAction(page, "Disable");
    await page
      .getByRole("region", { name: "Consequences" })
      .getByText("0", { exact: true })
      .waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByText("disabled", { exact: true }).waitFor();
    expect(await isValidKey(third)).toBe(false);
    await button(page, "Undo").click();
    await page.getByText("enabled", { exact: true }).waitFor();
    expect(await isValidKey(third)).toBe(true);

    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    await chooseAction(page, "Delete");
    await page.getByLabel("Type “Web shop 2” to confirm").fill("Web shop");
    await expectEventually(() => button(page, "Delete permanently").isDisabled(), true);
    await page.getByLabel("Type “Web shop 2” to confirm").fill("Web shop 2");
    expect(await accessibilityViolations(page)).toEqual([]);
    await button(page, "Delete permanently").click();
    await page.getByText("1 application", { exact: true }).waitFor();
    await page.setViewportSize({ width: 1024, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    const name = await page.getByRole("cell", { name: "Bootstrap", exact: true }).boundingBox();
    expect(name?.width).toBeGreaterThan(120);
    expect(await isValidKey(third)).toBe(false);
    expect(faults).toEqual([]);
  }, 600_000);
});
