import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  choose,
  chooseAction,
  expectEventually,
  holdRequests,
  horizontalOverflow,
  keyWorks,
  loseResponses,
  menu,
  readNewKey,
  signIn,
  signOut,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console application pages", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;

  /** Creates an application over the API. */
  async function createApplication(name: string, permissions: string[], type = "management") {
    const { id, key = "" } = await fixture.api.createApplication(fixture.root.key, {
      name,
      type,
      permissions,
    });
    return { id, key };
  }

  const isValidKey = (key: string) => keyWorks(fixture.server, key);

  it("shows validation errors beneath each field", async () => {
    const { page, faults } = await open("/applications/new");
    await page.getByLabel("Networks").fill("10.0.0.0/8\n10.0.0.1/8x");
    await page.getByText(/^10\.0\.0\.1\/8x: /).waitFor();
    await page.getByLabel("On a date").check();
    await page.getByLabel("Date and time (local)").fill("2020-01-01T00:00");
    await page.getByText("must be in the future").waitFor();
    await button(page, "Create application").click();
    await page.getByText("Name is required", { exact: true }).waitFor();
    await page.getByText("Add at least one permission or rule.").waitFor();
    await page.locator("input:focus[aria-invalid]").and(page.getByLabel("Name")).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);

    // Errors from the service appear in the same place.
    await page.getByLabel("Name").fill("Wrong network");
    await page.getByLabel("Never").check();
    await page.getByLabel("Networks").fill("");
    await button(page, "Create application").click();
    await waitForFocus(page.getByRole("combobox", { name: "Direct permissions" }));
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    await page.getByLabel("Networks").fill("10.0.0.0/8\n10.0.0.0/99");
    await button(page, "Create application").click();
    await page.locator("textarea:focus[aria-invalid]").waitFor();
    await page.getByText(/^10\.0\.0\.0\/99: /).waitFor();
    await page.getByLabel("Networks").fill("10.0.0.0/8");
    await page.getByText(/^10\.0\.0\.0\/99: /).waitFor({ state: "detached" });
    expect(faults).toEqual([]);
  });

  it("shows the errors of the service at the fields until they are fixed", async () => {
    const opened = await browser.open(`${fixture.server.url}/console/applications/new`);
    const { page, faults } = opened;
    const load = await holdRequests(page, "**/validate-*.js");
    await signIn(opened, fixture.root.key);
    await button(page, "Create application").click();
    await page.getByText("Name is required", { exact: true }).waitFor();
    await page.getByText("Fix the errors above.").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.getByLabel("Name", { exact: true }).fill("Fixed");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("tokn:read ");
    await page.getByText("Fix the errors above.").waitFor({ state: "detached" });
    await page.getByText("Latchkey does not know tokn:read.").waitFor();
    load();
    expect(faults).toEqual([]);
  });

  it("confirms the new application to a key that cannot read it", async () => {
    const { key } = await createApplication("Creator", ["application:create"]);
    const opened = await open("/applications/new?type=public", key);
    const { page } = opened;
    expect(await page.getByRole("radio", { name: "public" }).isChecked()).toBe(true);
    await page.getByLabel("Name", { exact: true }).fill("Not shown");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    await button(page, "Create application").click();
    await readNewKey(opened);
    await page.getByText("Not shown is created").waitFor();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  it("creates and rotates once if a response is lost and the user tries again", async () => {
    const opened = await open("/applications/new");
    const { page } = opened;
    const restore = await loseResponses(page, "**/CreateApplication");
    await page.getByLabel("Name").fill("Lost and found");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    await page.getByLabel("After a number of days").check();
    await button(page, "Create application").click();
    await page.getByRole("alert").getByText("The change may have been made.").waitFor();
    await restore();
    await button(page, "Create application").click();
    expect(await isValidKey(await readNewKey(opened))).toBe(true);
    const { data } = await fixture.api.listApplications(fixture.root.key, {
      namePrefix: "Lost and found",
    });
    expect(data.length).toBe(1);
    const id = data[0]?.id as string;

    const dialog = page.getByRole("dialog");
    const restoreRotation = await loseResponses(page, "**/RegenerateApplicationKey");
    await button(page, "Rotate key").click();
    await dialog.getByLabel("Revoke all current keys now").check();
    await dialog.getByRole("button", { name: "Rotate key" }).click();
    await dialog.getByText("The change may have been made.").waitFor();
    const rotated = (await fixture.api.listApplicationKeys(fixture.root.key, { id })).data;
    await page.getByTitle(rotated[0]?.id as string).waitFor();
    await restoreRotation();
    await dialog.getByRole("button", { name: "Rotate key" }).click();
    expect(await isValidKey(await readNewKey(opened))).toBe(true);
    expect((await fixture.api.listApplicationKeys(fixture.root.key, { id })).data).toMatchObject([
      { id: rotated[0]?.id },
    ]);
  });

  it("keeps an open form if the application is deleted elsewhere, then says so", async () => {
    const { id } = await createApplication("Short-lived", ["token:read"]);
    const { page, faults } = await open(`/applications/${id}`);
    await button(page, "Edit details").click();
    await page.getByLabel("Description").fill("long text");
    await fixture.api.deleteApplication(fixture.root.key, { id });
    await page.getByRole("alert").first().waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("long text");
    await button(page, "Cancel").click();
    await page.getByText("This application was deleted").waitFor();
    expect(await button(page, "Rotate key").count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole("link", { name: "See its activity" }).click();
    await page.getByText("Short-lived was deleted by").waitFor();
    expect(faults).toEqual([]);
  });

  it("does not disable or delete the last application that can manage the tenant", async () => {
    const { page, faults } = await open(`/applications/${fixture.root.applicationId}`);
    for (const [action, verb] of [
      ["Disable", "disabled"],
      ["Delete", "deleted"],
    ]) {
      await chooseAction(page, action as string);
      await page.getByText(`so this one cannot be ${verb}.`).waitFor();
      expect(await page.getByText("You are signed out").count()).toBe(0);
      const confirm = page.getByRole("dialog").getByRole("button", { name: action as string });
      expect(await confirm.isDisabled()).toBe(true);
      await button(page, "Cancel").click();
    }
    expect(faults).toEqual([]);
  });

  it("prompts before it discards unsaved changes", async () => {
    await createApplication("Left  alone", ["token:read"], "private");
    const opened = await open("/applications");
    const { page, faults } = opened;
    await page.getByRole("link", { name: "Left alone" }).click();
    await button(page, "Edit details").click();
    await page.getByLabel("Name").fill("Not left");
    const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
    await menu(page).getByRole("link", { name: "Sessions" }).click();
    await dialog.getByRole("button", { name: "Stay" }).click();
    await waitForFocus(menu(page).getByRole("link", { name: "Sessions" }));
    await page.evaluate("history.back()");
    await dialog.waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Stay" }).click();
    await expectEventually(() => page.getByLabel("Name").inputValue(), "Not left");
    await signOut(page);
    await dialog.getByRole("button", { name: "Stay" }).click();
    // A new key has its own prompt, which does not replace that of the form.
    await button(page, "Rotate key").click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
    await readNewKey(opened);
    await menu(page).getByRole("link", { name: "Sessions" }).click();
    await dialog.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();

    // The deletion leaves without a prompt. The label shows the name as it must be typed.
    await page.goBack();
    await button(page, "Edit details").click();
    await page.getByLabel("Name").fill("Not left");
    await chooseAction(page, "Delete");
    const label = await page.getByRole("dialog").locator("label").innerText();
    await page.getByLabel(label).fill(label.replace(/^.*“(.*)”.*$/, "$1"));
    await button(page, "Delete permanently").click();
    await page.getByText("Left alone is deleted").waitFor();
    await page.getByRole("heading", { name: "Applications", level: 1 }).waitFor();
    await expectEventually(() => page.getByRole("dialog").count(), 0);
    expect(faults).toEqual([]);
  });

  it("prompts before it leaves without a new key", async () => {
    await createApplication("Forgotten", ["token:read"], "private");
    const { page, faults } = await open("/applications");
    await page.getByRole("link", { name: "Forgotten" }).click();
    await button(page, "Rotate key").click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
    await page.getByTestId("new-key").waitFor();
    const dialog = page.getByRole("dialog", { name: "Leave without the key?" });
    await page.evaluate("history.back()");
    await dialog.getByRole("button", { name: "Stay" }).click();
    await page.getByTestId("new-key").waitFor();
    await page.evaluate("history.back()");
    await dialog.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Applications", level: 1 }).waitFor();
    await expectEventually(() => page.getByRole("dialog").count(), 0);
    expect(faults).toEqual([]);
  });

  it("revokes a key and all sessions after a confirmation", async () => {
    const { id, key } = await createApplication("Busy", ["token:read"], "public");
    await fixture.api.regenerateApplicationKey(fixture.root.key, {
      id,
      gracePeriod: durationFromMs(3_600_000),
    });
    const { sessionKey } = await fixture.api.createSession(key);
    const { page, faults } = await open(`/applications/${id}`);
    await page.getByText("1 open session", { exact: true }).waitFor();
    await button(page, "Revoke all sessions").press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await waitForFocus(button(page, "Revoke all sessions"));
    await button(page, "Revoke all sessions").click();
    await button(page, "Revoke all").click();
    await page.getByText("No open sessions").waitFor();
    expect([await isValidKey(sessionKey), await isValidKey(key)]).toEqual([false, true]);

    const replaced = page.getByRole("row", { name: /replaced/ });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await replaced.getByRole("button", { name: "Copy key ID" }).click();
    const keyId = await page.evaluate<string>("navigator.clipboard.readText()");
    await replaced.getByText(`…${keyId.slice(-8)}`, { exact: true }).waitFor();
    await replaced.getByRole("button", { name: "Revoke key" }).click();
    await page.getByRole("dialog").getByText(keyId).waitFor();
    await button(page, "Revoke key").click();
    await replaced.waitFor({ state: "detached" });
    await page.getByRole("row", { name: /current/ }).waitFor();
    expect(await isValidKey(key)).toBe(false);
    const current = page.getByRole("row", { name: /current/ });
    await current.getByRole("button", { name: "Revoke key" }).click();
    const prompt = page.getByRole("dialog");
    await prompt.getByText("It is the only key").waitFor();
    await prompt.getByText("and never used").waitFor();
    expect(faults).toEqual([]);
  });

  it("shows keys in full beside the details on a laptop", async () => {
    const { page } = await open(`/applications/${fixture.root.applicationId}`);
    await page.setViewportSize({ width: 1250, height: 800 });
    await page.getByRole("row", { name: /current/ }).waitFor();
    const isOneLine = `document.querySelector(".key-name code").offsetHeight < 30`;
    expect(await page.evaluate<boolean>(isOneLine)).toBe(true);
    expect(await horizontalOverflow(page)).toBe(0);
  });

  it("reports a conflicting change from another tab and keeps the input", async () => {
    const { id } = await createApplication("Shared", ["token:read"], "private");
    const mine = await open(`/applications/${id}`);
    const { page } = mine;
    await button(page, "Edit details").click();
    await page.getByLabel("Name").fill("Mine");
    const theirs = await browser.openTab(mine, `${fixture.server.url}/console/applications/${id}`);
    await signIn(theirs, fixture.root.key);
    await button(theirs.page, "Edit details").click();
    await theirs.page.getByLabel("Name").fill("Theirs");
    await theirs.page.getByLabel("External ID").fill("svc-1");
    await button(theirs.page, "Save").click();
    await theirs.page.getByRole("heading", { name: "Theirs" }).waitFor();

    await button(page, "Load latest version").click();
    await page.getByText("These fields were also changed elsewhere").waitFor();
    expect(await page.getByRole("region", { name: "Name" }).textContent()).toContain("Theirs");
    await expectEventually(() => page.getByRole("textbox", { name: "Name" }).inputValue(), "Mine");
    await expectEventually(() => page.getByLabel("External ID").inputValue(), "svc-1");
    expect(await accessibilityViolations(page)).toEqual([]);
    await button(page, "Save").click();
    await page.getByRole("heading", { name: "Mine" }).waitFor();
    await page.getByText("svc-1").waitFor();
    expect([...mine.faults, ...theirs.faults]).toEqual([]);
  });

  it("shows the new key after a user replaces their own key and is signed out", async () => {
    const { id, key } = await createApplication("Own", [
      "application:read",
      "application:update",
      "event:read",
    ]);
    const opened = await open(`/applications/${id}`, key);
    const { page } = opened;
    await button(page, "Rotate key").click();
    await page.getByText("You are signed in with a key of this application.").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByLabel("Custom grace period").check();
    await choose(page, "Unit", "days");
    await page.getByLabel("Duration").fill("31");
    await page.locator("input:focus[aria-invalid]").waitFor();
    const rotate = page.getByRole("dialog").getByRole("button", { name: "Rotate key" });
    await expectEventually(() => rotate.isDisabled(), true);
    await page.getByLabel("Revoke all current keys now").check();
    await rotate.click();
    await page.getByRole("heading", { name: "Sign in", includeHidden: true }).waitFor();
    const next = await readNewKey(opened);
    expect(await isValidKey(next)).toBe(true);
    await page.getByText("Your key is no longer valid").waitFor();
  });

  it("shows the new keys of several applications after the key in use is refused", async () => {
    const admin = await createApplication("Rotator", [
      "application:read",
      "application:update",
      "event:read",
    ]);
    await createApplication("Rotated", ["token:read"], "private");
    const { page, faults } = await open("/applications?q=rotated", admin.key);
    await page.getByLabel("Select Rotated").check();
    await button(page, "Rotate keys").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Rotate keys" }).click();
    await page.getByText("1 rotated.").waitFor();
    await fixture.api.disableApplication(fixture.root.key, { id: admin.id });
    await page.getByRole("heading", { name: "Sign in", includeHidden: true }).waitFor();
    const key = (await dialog.locator("code").textContent()) ?? "";
    expect(await isValidKey(key)).toBe(true);
    await button(page, "I have stored the keys").click();
    await page.getByText("Your key is no longer valid").waitFor();
    expect(await page.content()).not.toContain(key);
    expect(faults).toEqual([]);
  });

  it("hides actions that the key has no permission for", async () => {
    const { key } = await createApplication("Reader", ["application:read"]);
    const { page } = await open(`/applications/${fixture.root.applicationId}`, key);
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await page.getByRole("row", { name: /current/ }).waitFor();
    expect(await page.locator("main").getByRole("button").count()).toBe(3);
    await page.getByRole("button", { name: "Copy key ID" }).waitFor();
    await button(page, "Copy ID").waitFor();
    await button(page, "More actions").click();
    await expectEventually(() => page.getByRole("menuitem").allTextContents(), ["Copy ID"]);
    await page.keyboard.press("Escape");
    expect(await page.getByRole("heading", { name: "Recent activity" }).count()).toBe(0);
    await menu(page).getByRole("link", { name: "Applications" }).click();
    await page.getByRole("table").waitFor();
    expect(await page.getByRole("link", { name: "New application" }).count()).toBe(0);
  });

  it("names the missing permission", async () => {
    const { key } = await createApplication("Blind", ["token:read"]);
    const { page, faults } = await open("/applications/new", key);
    await page.getByText("needs the permission application:create").waitFor();
    expect(await menu(page).getByRole("link", { name: "Applications" }).count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
