import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  expectEventually,
  horizontalOverflow,
  openSignedIn,
  readNewKey,
  signIn,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console application fields", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;

  const granted = { type: "private", permissions: ["token:read"] };
  const inDays = (days: number) => timestampFromMs(fixture.server.clock.now() + days * 86_400_000);

  it("sets, changes and clears the description, external id, metadata and expiry", async () => {
    const opened = await open("/applications/new");
    const { page, faults } = opened;
    const field = (label: string) => page.getByLabel(label, { exact: true });
    await field("Name").fill("Billing");
    await field("Description").fill("Pays bills.\nAsk the payments team.");
    await field("External ID").fill("svc-4711");
    await button(page, "Add metadata").click();
    await field("Key").fill("team");
    await field("Value").fill("payments");
    await button(page, "Add metadata").click();
    await field("Key").nth(1).fill("team");
    await page.getByText("key is used more than once").first().waitFor();
    await field("Key").nth(1).fill("tier");
    await field("After a number of days").check();
    await field("Days from now").fill("999999999999999");
    await page.getByText("must be before the year 10000").waitFor();
    await field("Days from now").fill("30");
    await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    await button(page, "Create application").click();
    await readNewKey(opened);

    await page.getByText("Ask the payments team.").waitFor();
    await button(page, "Copy external ID").waitFor();
    await page.getByRole("region", { name: "Details" }).getByText("in 30 days").waitFor();
    await page.getByRole("region", { name: "Keys" }).getByText("in 30 days").waitFor();
    const metadata = page.getByRole("region", { name: "Metadata" });
    await expectEventually(() => metadata.getByRole("term").allTextContents(), ["team", "tier"]);
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    const read = async () =>
      (await fixture.api.listApplications(fixture.root.key, { namePrefix: "Billing" })).data[0];
    expect(await read()).toMatchObject({
      description: "Pays bills.\nAsk the payments team.",
      externalId: "svc-4711",
      metadata: { team: "payments", tier: "" },
    });

    await button(page, "Edit details").click();
    await field("Description").fill("");
    await field("Never").check();
    await field("External ID").fill("svc-4712");
    await button(page, "Save").click();
    await page.getByText("svc-4712").waitFor();
    await button(page, "Edit metadata").click();
    await button(page, "Remove tier").click();
    await waitForFocus(button(page, "Add metadata"));
    await button(page, "Remove team").click();
    await button(page, "Save").click();
    await metadata.getByText("None yet.").waitFor();
    const { description, externalId, metadata: pairs, expiresAt } = (await read()) ?? {};
    expect({ description, externalId, pairs, expiresAt }).toEqual({
      externalId: "svc-4712",
      pairs: {},
    });

    await page.goto(`${fixture.server.url}/console/activity`);
    await signIn(opened, fixture.root.key);
    const updates = page.getByText("Billing was updated by");
    await updates.nth(1).waitFor();
    const changes = page.getByRole("region", { name: "Changes" });
    const shown: string[] = [];
    for (const index of [0, 1]) {
      await updates.nth(index).click();
      shown.push(...(await changes.innerText()).split("\n"));
      await page.keyboard.press("Escape");
      await changes.waitFor({ state: "detached" });
    }
    for (const text of ["Description", "Expires", "External ID", "Metadata"]) {
      expect(shown).toContain(text);
    }
    expect(shown.join()).toMatch(/team=payments/);
    expect(shown.join()).toMatch(/svc-4711.*svc-4712/);
    expect(faults).toEqual([]);
  });

  it("shows a new key even if the scripts of its dialog cannot be loaded", async () => {
    for (const [name, scripts] of [
      ["Without samples", "**/key-samples-*.js"],
      ["Without dialog", "**/dialog-window-*.js"],
    ] as const) {
      const { page, faults } = await browser.open("about:blank");
      await page.route(scripts, (route) => route.fulfill({ status: 404 }));
      await page.goto(`${fixture.server.url}/console/applications/new`);
      await signIn({ page, faults }, fixture.root.key);
      await page.getByLabel("Name", { exact: true }).fill(name);
      await page.getByRole("combobox", { name: "Direct permissions" }).fill("token:read ");
      await button(page, "Create application").click();
      await page.getByText(/^lk_prv_/).waitFor();
      await page.context().close();
    }
  });

  it("shows a taken external id at its field", async () => {
    await fixture.api.createApplication(fixture.root.key, {
      ...granted,
      name: "First",
      externalId: "taken",
    });
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...granted,
      name: "Second",
    });
    const { page, faults } = await open(`/applications/${id}`);
    await button(page, "Edit details").click();
    const externalId = page.getByLabel("External ID", { exact: true });
    await externalId.fill("taken");
    await button(page, "Save").click();
    await page.getByText("is used by another application").waitFor();
    await waitForFocus(externalId);
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    await externalId.fill("free");
    await page.getByText("is used by another application").waitFor({ state: "detached" });
    await button(page, "Save").click();
    await page.getByText("Details saved").waitFor();
    expect(faults).toEqual([]);
  });

  it("shows the saved values of fields that were also changed elsewhere", async () => {
    const before = { ...granted, name: "Shared" };
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...before,
      expiresAt: inDays(7),
    });
    const { page, faults } = await open(`/applications/${id}`);
    await button(page, "Edit details").click();
    await page.getByLabel("Description", { exact: true }).fill("Mine");
    await page.getByLabel("After a number of days").check();
    await fixture.api.updateApplication(fixture.root.key, {
      ...before,
      id,
      description: "Theirs",
      updateMask: { paths: ["expires_at", "description"] },
    });
    await button(page, "Load latest version").click();
    const saved = (label: string) => page.getByRole("region", { name: label }).textContent();
    await page.getByText("These fields were also changed elsewhere").waitFor();
    expect(await saved("Description")).toContain("Theirs");
    expect(await saved("Expires")).toContain("never");
    expect(await accessibilityViolations(page)).toEqual([]);
    await button(page, "Use the saved Description").click();
    await button(page, "Save").click();
    await page.getByText("Details saved").waitFor();
    expect(await fixture.api.getApplication(fixture.root.key, { id })).toMatchObject({
      description: "Theirs",
      expiresAt: expect.anything(),
    });
    expect(faults).toEqual([]);
  });

  it("shows that saved metadata is empty", async () => {
    const shared = { ...granted, name: "Emptied" };
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shared,
      metadata: { a: "1" },
    });
    const { page, faults } = await open(`/applications/${id}`);
    await button(page, "Edit metadata").click();
    await page.getByLabel("Value", { exact: true }).fill("mine");
    const updateMask = { paths: ["metadata"] };
    await fixture.api.updateApplication(fixture.root.key, { ...shared, id, updateMask });
    await button(page, "Load latest version").click();
    const metadata = page.getByRole("region", { name: "Metadata" }).first();
    await metadata.getByText("none", { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  it("leaves without a prompt if the input means the saved values", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...granted,
      type: "public",
      name: "Steady",
      sessionQuota: 5,
      metadata: { a: "1" },
    });
    const { page, faults } = await open(`/applications/${id}`);
    const leave = async () => {
      await page.getByRole("navigation", { name: "Breadcrumbs" }).getByRole("link").click();
      await page.getByRole("link", { name: "Steady" }).click();
    };
    await button(page, "Edit details").click();
    await page.getByLabel("On a date").check();
    await page.getByLabel("Date and time (local)").fill("2090-01-01T00:00");
    await page.getByLabel("Never").check();
    await leave();
    await button(page, "Edit metadata").click();
    await button(page, "Add metadata").click();
    await leave();
    await button(page, "Edit restrictions").click();
    await page.getByLabel("Session quota").fill(" 5 ");
    await leave();

    await button(page, "Edit restrictions").click();
    await page.getByLabel("Session quota").fill(" ");
    await button(page, "Save").click();
    await page.getByText("Restrictions saved").waitFor();
    expect(
      (await fixture.api.getApplication(fixture.root.key, { id })).sessionQuota,
    ).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it("finds an application by its external id, and keeps the filter in the URL", async () => {
    await fixture.api.createApplication(fixture.root.key, {
      ...granted,
      name: "Found",
      externalId: "ext 9",
    });
    const { page, faults } = await open("/applications");
    await button(page, "Filter").click();
    await page.getByRole("textbox", { name: "External ID" }).fill("ext 9");
    await page.getByText("1 application found").waitFor();
    await page.getByRole("link", { name: "Found", exact: true }).waitFor();
    await expectEventually(() => new URL(page.url()).search, "?externalId=ext+9");
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    const otherTab = await openSignedIn(browser, page.url(), fixture.root.key);
    await otherTab.page.getByText("1 application found").waitFor();
    await otherTab.page.context().close();
    await page.getByRole("textbox", { name: "External ID" }).fill("ext");
    await expectEventually(() => new URL(page.url()).search, "?externalId=ext");
    await page.keyboard.press("Escape");
    await button(page, "Clear filters").click();
    await page.getByRole("list", { name: "Filters" }).waitFor({ state: "detached" });
    await expectEventually(() => new URL(page.url()).search, "");
    expect(faults).toEqual([]);
  });

  it("keeps an expiry that is not changed, and moves one that is", async () => {
    const before = inDays(7);
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...granted,
      name: "Lasting",
      expiresAt: { ...before, nanos: 123_000_000 },
    });
    const { page, faults } = await open(`/applications/${id}`);
    const readExpiry = async () =>
      (await fixture.api.getApplication(fixture.root.key, { id })).expiresAt;
    await button(page, "Edit details").click();
    await page.getByLabel("Name", { exact: true }).fill("Lasting 2");
    await button(page, "Save").click();
    await page.getByRole("heading", { name: "Lasting 2" }).waitFor();
    expect(await readExpiry()).toMatchObject({ seconds: before.seconds, nanos: 123_000_000 });

    const key = page.getByRole("region", { name: "Keys" }).getByRole("row", { name: /current/ });
    await key.getByText("in 7 days").waitFor();
    await page.getByRole("link", { name: "Applications" }).first().click();
    await page.getByRole("tab", { name: "Expiring soon" }).click();
    await page.getByText(/^\d applications? expires? within 30 days$/).waitFor();
    await page.getByRole("link", { name: "Lasting 2" }).click();

    await button(page, "Edit details").click();
    const date = page.getByLabel("Date and time (local)");
    await date.fill("2020-01-01T00:00");
    await page.getByText("must be in the future").waitFor();
    await date.fill("2090-01-01T00:00");
    await button(page, "Save").click();
    await page.getByRole("heading", { name: "Lasting 2" }).waitFor();
    const after = new Date("2090-01-01T00:00").getTime() / 1_000;
    await expectEventually(async () => Number((await readExpiry())?.seconds), after);
    expect(faults).toEqual([]);
  });
});
