import { readFileSync } from "node:fs";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { ApplicationFields } from "../../src/store/port/records.js";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  choose,
  expectEventually,
  holdRequests,
  horizontalOverflow,
  keyWorks,
  openSignedIn,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";
import { seedApplications } from "./seed.js";

const count = 10_000;

describeInBrowser("console list of 10,000 applications", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;
  let seeded: readonly ApplicationFields[];
  let shopKey: string;
  let billingKey: string;
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    seeded = await seedApplications(fixture.server.store, fixture.root.tenantId, count);
    const fields = { type: "private", permissions: ["token:read"] };
    shopKey = keyOf(
      await fixture.api.createApplication(fixture.root.key, { ...fields, name: "Web shop" }),
    );
    billingKey = keyOf(
      await fixture.api.createApplication(fixture.root.key, {
        ...fields,
        name: "Billing api 1000",
      }),
    );
    opened = await open("/applications");
    ({ page } = opened);
  });

  beforeEach(async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("link", { name: "Applications" }).click();
    await search("");
    await page.getByText("10,003 applications").waitFor();
  });

  const application = (name: string) => page.getByRole("link", { name, exact: true });
  const search = (text: string) => page.getByRole("searchbox", { name: "Search" }).fill(text);
  const select = (name: string) => page.getByLabel(`Select ${name}`, { exact: true }).check();
  const inDialog = (name: string) =>
    page.getByRole("dialog").getByRole("button", { name, exact: true });

  it("lists the newest first and renders only visible rows", async () => {
    await page.evaluate("scrollTo(0, 0)");
    await application("Bootstrap").waitFor();
    const table = page.getByRole("table", { name: "Applications" });
    expect(await table.getAttribute("aria-rowcount")).toBe(String(count + 4));
    const rows = table.getByRole("row");
    expect(await rows.nth(1).getAttribute("aria-rowindex")).toBe("2");
    expect(await rows.nth(4).textContent()).toContain("Service 9999");
    expect(await rows.count()).toBeLessThan(60);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.evaluate("scrollTo(0, document.body.scrollHeight)");
    await application("Service 0").waitFor();
    expect(await page.getByRole("row").last().getAttribute("aria-rowindex")).toBe(
      String(count + 4),
    );
    expect(await page.getByRole("row").count()).toBeLessThan(60);
  });

  /** Holds the calls that continue a search after its first 10,000 applications. */
  async function holdContinuations(): Promise<() => void> {
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/latchkey.v1.ApplicationService/ListApplications", async (route) => {
      if (route.request().postDataJSON().start !== undefined) {
        await isReleased;
      }
      await route.fallback();
    });
    return release;
  }

  it("finds words anywhere, and continues a search by itself until it is stopped", async () => {
    const refused: string[] = [];
    page.on("response", (response) => {
      if (response.status() === 400) {
        refused.push(response.request().postData() ?? "");
      }
    });
    const release = await holdContinuations();
    await search("shop");
    await application("Web shop").waitFor();
    await page.getByText("Searching… 1 application found so far").waitFor();
    await button(page, "Stop").click();
    await page.getByText("Stopped before the end, 1 application found so far").waitFor();
    await button(page, "Continue the search").click();
    await page.getByText("Searching… 1 application found so far").waitFor();
    release();
    await page.getByText("1 application found").waitFor();
    await search("1000");
    await application("Billing api 1000").waitFor();
    await expectEventually(() => new URL(page.url()).search, "?q=1000");
    // For example the cursor of the first search with the words of the second.
    expect(refused).toEqual([]);
  });

  it("finds exact external ids and sessions without reading the list, here and in the palette", async () => {
    const { id = "", name } = seeded[0] ?? {};
    const externalId = "crm-ledger-0";
    const fields = { id, name: String(name), permissions: ["token:read"] };
    await fixture.api.updateApplication(fixture.root.key, { ...fields, externalId });
    const till = await fixture.api.createApplication(fixture.root.key, {
      name: "Till",
      type: "public",
      permissions: ["token:read"],
    });
    const session = await fixture.api.createSession(keyOf(till));
    const release = await holdContinuations();
    await search(externalId);
    await application(String(name)).waitFor();
    await search(session.id);
    await application("Till").waitFor();

    await page.keyboard.press("Control+k");
    const palette = page.getByRole("combobox", { name: "Search" });
    await palette.fill(externalId);
    await page.getByRole("option", { name: `${name} private` }).waitFor();
    await page.getByText("Searching older applications…").waitFor();
    await palette.fill(session.id);
    await page.getByRole("option", { name: "Open the session" }).waitFor();
    const { data } = await fixture.api.listEvents(fixture.root.key, { target: id, size: 1 });
    await palette.fill(String(data[0]?.id));
    await page.getByRole("option", { name: "Open the event: Application updated" }).click();
    await page.getByRole("dialog", { name: "Application updated" }).waitFor();
    await button(page, "Close").click();
    release();
    await fixture.api.deleteApplication(fixture.root.key, { id: till.id });
  });

  it("finds an application by id and by key, and keeps the key out of the URL", async () => {
    await search(seeded[4321]?.id ?? "");
    await page.getByText("1 application found").waitFor();
    await application("Service 4321").waitFor();
    await search(shopKey);
    await application("Web shop").waitFor();
    await page.getByText("Searching by key; it is not stored in the URL.").waitFor();
    const stored = await page.evaluate<string>(
      "JSON.stringify([location.href, history.state, { ...localStorage }, { ...sessionStorage }])",
    );
    expect(stored).not.toContain("lk_");
    await button(page, "Clear search").click();
    await waitForFocus(page.getByRole("searchbox", { name: "Search" }));
    const otherTab = await openSignedIn(
      browser,
      `${page.url()}?q=${shopKey}&type=public`,
      fixture.root.key,
    );
    await expectEventually(() => new URL(otherTab.page.url()).search, "?type=public");
    await otherTab.page.context().close();
    await button(page, "Filter").click();
    await page.getByLabel("External ID").fill(shopKey);
    await page.getByText("contains a key, and keys must not be in URLs").waitFor();
    await page.keyboard.press("Escape");
    await page.getByLabel("External ID").waitFor({ state: "detached" });
    expect(page.url()).not.toContain("lk_");
    await search("nothing of that name");
    await button(page, "Clear filters").click();
    await page.getByText("10,003 applications").waitFor();
  });

  it("closes suggestions with Escape, and the filters with another", async () => {
    await button(page, "Filter").click();
    const permission = page.getByRole("combobox", { name: "Permission" });
    await permission.click();
    await page.getByRole("listbox").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor({ state: "detached" });
    await waitForFocus(permission);
    await page.keyboard.press("Escape");
    await permission.waitFor({ state: "detached" });
  });

  it("keeps search, filters, order and view in the URL", async () => {
    const matches = seeded.filter(({ name, type }) => name.includes("77") && type === "public");
    const found = `${matches.length} applications found`;
    await search("SERVICE 77 ");
    await button(page, "Filter").click();
    await choose(page, "Type", "public");
    await page.getByText(found).waitFor();
    await expectEventually(() => page.getByRole("searchbox").inputValue(), "SERVICE 77 ");
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByLabel("External ID").fill("svc-1");
    await page.keyboard.press("Escape");
    await button(page, "Remove filter External ID").click();
    await waitForFocus(button(page, "Filter"));
    await expectEventually(() => new URL(page.url()).search, "?q=SERVICE+77&type=public");
    const otherTab = await openSignedIn(browser, page.url(), fixture.root.key);
    await otherTab.page.getByText(found).waitFor();
    await button(otherTab.page, "Remove filter Type").click();
    await button(otherTab.page, "Remove filter Type").waitFor({ state: "detached" });
    await otherTab.page.goBack();
    await button(otherTab.page, "Remove filter Type").waitFor();
    await button(otherTab.page, "Clear all").click();
    await waitForFocus(button(otherTab.page, "Filter"));
    await choose(otherTab.page, "Sort", "Name");
    await otherTab.page.getByRole("row").nth(1).getByText("Billing api 1000").waitFor();
    await expectEventually(() => new URL(otherTab.page.url()).search, "?order=name");
    await otherTab.page.getByRole("tab", { name: "Expiring soon" }).click();
    await otherTab.page.getByText("0 applications expire within 30 days").waitFor();
    await otherTab.page.getByText("Nothing expires in the next 30 days").waitFor();
    await otherTab.page.getByRole("tab", { name: "Unused" }).click();
    await otherTab.page.getByText("10,000 applications unused for 90 days").waitFor();
    await expectEventually(() => new URL(otherTab.page.url()).search, "?view=unused");
    expect(await accessibilityViolations(otherTab.page)).toEqual([]);
    await otherTab.page.context().close();
  });

  it("applies each filter and each order", async () => {
    // The newest application needs a later id than the others.
    fixture.server.clock.advance(1_000);
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      name: "Winter sale",
      type: "private",
      permissions: ["season:run"],
      externalId: "winter-1",
      expiresAt: timestampFromMs(Date.now() + 10 * 86_400_000),
    });
    await fixture.api.disableApplication(fixture.root.key, { id });
    await page.getByText("10,004 applications").waitFor();
    const first = page.getByRole("row").nth(1);
    const write = async (label: string, text: string) => {
      await page.getByLabel(label, { exact: true }).fill(text);
      await page.keyboard.press("Escape");
    };
    const publicOnes = seeded.filter(({ type }) => type === "public").length;
    const many = (found: number) => `${found.toLocaleString("en-US")} applications`;
    const filters: [label: string, set: () => Promise<void>, query: string, found: string][] = [
      ["Type", () => choose(page, "Type", "public"), "type=public", many(publicOnes)],
      ["Status", () => choose(page, "Status", "disabled"), "status=disabled", "1 application"],
      ["Expires", () => choose(page, "Expires", "within 30 days"), "expires=30", "1 application"],
      ["Last used", () => choose(page, "Last used", "not for 90 days"), "unused=90", many(count)],
      ["Last used", () => choose(page, "Last used", "never"), "unused=never", many(count + 4)],
      [
        "Permission",
        () => write("Permission", "season:run"),
        "permission=season:run",
        "1 application",
      ],
      [
        "External ID",
        () => write("External ID", "winter-1"),
        "externalId=winter-1",
        "1 application",
      ],
      [
        "Created by",
        async () => {
          await page.getByLabel("Created by").fill("Bootstrap");
          await page.getByRole("option", { name: "Bootstrap" }).click();
        },
        `createdBy=${fixture.root.applicationId}`,
        "3 applications",
      ],
    ];
    for (const [label, set, query, found] of filters) {
      await button(page, "Filter").click();
      await set();
      await page.getByText(`${found} found`).waitFor();
      expect(decodeURIComponent(new URL(page.url()).search)).toBe(`?${query}`);
      await page.keyboard.press("Escape");
      await button(page, `Remove filter ${label}`).click();
      await page.getByText("10,004 applications").waitFor();
    }
    const orders = [
      ["Name", "Name", "?order=name", "Billing api 1000"],
      ["Last used", "Longest unused", "?order=last_used_at", "Service 0"],
      ["Expires", "Next to expire", "?order=expires_at", "Winter sale"],
      ["Created", "Newest first", "", "Winter sale"],
    ] as const;
    for (const [column, option, query, name] of orders) {
      await page.getByRole("columnheader", { name: column }).getByRole("button").click();
      await expectEventually(() => new URL(page.url()).search, query);
      await first.getByText(name, { exact: true }).waitFor();
      await page.getByRole("combobox", { name: "Sort" }).getByText(option).waitFor();
    }
    for (const [, option, query, name] of orders) {
      await choose(page, "Sort", option);
      await expectEventually(() => new URL(page.url()).search, query);
      await first.getByText(name, { exact: true }).waitFor();
    }
    await fixture.api.deleteApplication(fixture.root.key, { id });
  });

  it("disables, enables, rotates and deletes several applications", async () => {
    for (const name of ["Web shop", "Billing api 1000", "Bootstrap"]) {
      await select(name);
    }
    await button(page, "Disable").click();
    await page.getByText("includes the key you are signed in with").waitFor();
    await page.getByText("At least one enabled application must be able").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await inDialog("Disable").click();
    await page.getByText("2 disabled, 1 failed.").waitFor();
    await page.getByText("This is the last enabled application").waitFor();
    expect(await keyWorks(fixture.server, shopKey)).toBe(false);
    await inDialog("Retry 1 failed").click();
    await inDialog("Done").click();
    await page.getByText("1 of 10,003 selected").waitFor();
    await button(page, "Undo").click();
    await page.getByText("2 applications enabled again").waitFor();
    expect(await keyWorks(fixture.server, shopKey)).toBe(true);

    await button(page, "Clear selection").click();
    await select("Web shop");
    expect(await button(page, "Enable").isDisabled()).toBe(true);
    await select("Billing api 1000");
    await button(page, "Rotate keys").click();
    await page.getByLabel("Custom grace period").check();
    await page.getByLabel("Duration").fill("99999");
    await page.locator("input:focus[aria-invalid]").waitFor();
    expect(await inDialog("Rotate keys").isDisabled()).toBe(true);
    await page.getByLabel("Revoke all current keys now").check();
    await inDialog("Rotate keys").click();
    await page.getByText("2 rotated.").waitFor();
    const keys = await page.getByRole("dialog").locator("code").allTextContents();
    expect(await Promise.all(keys.map((key) => keyWorks(fixture.server, key)))).toEqual([
      true,
      true,
    ]);
    expect(await keyWorks(fixture.server, billingKey)).toBe(false);
    const downloading = page.waitForEvent("download");
    await inDialog("Download CSV").click();
    const file = readFileSync(await (await downloading).path(), "utf8");
    expect(keys.every((key) => file.includes(key))).toBe(true);
    await inDialog("I have stored the keys").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await page.content()).not.toContain("lk_");

    await page.getByLabel("Select Web shop", { exact: true }).focus();
    const [, , third] = await Promise.all(
      ["Old one", "Old two", "Old three"].map((name) =>
        fixture.api.createApplication(fixture.root.key, {
          name,
          type: "private",
          permissions: ["token:read"],
        }),
      ),
    );
    // The rows above are new.
    await application("Old three").waitFor();
    await waitForFocus(page.getByLabel("Select Web shop", { exact: true }));
    await select("Old one");
    await select("Old two");
    await select("Old three");
    await button(page, "Delete").click();
    expect(await inDialog("Delete permanently").isDisabled()).toBe(true);
    await page.getByLabel("Type “delete 3” to confirm").fill("delete 3");
    await fixture.api.deleteApplication(fixture.root.key, { id: third?.id ?? "" });
    await inDialog("Delete permanently").click();
    await page.getByText("2 deleted, 1 failed.").waitFor();
    expect(await inDialog("Retry 1 failed").count()).toBe(0);
    await inDialog("Done").click();
    await page.getByText("10,003 applications").waitFor();
    await expectEventually(() => page.getByRole("region", { name: "Selection" }).count(), 0);
  });

  it("keeps the rest selected after a stop, and says how much of the list is selected", async () => {
    await page.evaluate("scrollTo(0, 0)");
    const all = page.getByLabel("Select all");
    await all.click();
    await page.getByText("100 of 10,003 selected").waitFor();
    await page.locator("thead input:indeterminate").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("Escape");
    await button(page, "Select all 10,003").click();
    await page.getByText("10,003 of 10,003 selected").waitFor();
    expect(await all.isChecked()).toBe(true);
    await all.click();
    await page.getByRole("region", { name: "Selection" }).waitFor({ state: "detached" });
    for (const number of [9999, 9998, 9997, 9996, 9995, 9994]) {
      await select(`Service ${number}`);
    }
    const release = await holdRequests(page, "**/DisableApplication");
    await button(page, "Disable").click();
    await inDialog("Disable").click();
    await inDialog("Stop").click();
    release();
    await page.getByText("4 disabled, 2 not started.").waitFor();
    await inDialog("Continue with 2").waitFor();
    await inDialog("Done").click();
    await page.getByText("2 of 10,003 selected").waitFor();
  });

  it("shows cards on a small screen without horizontal scrolling", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await application("Service 9998").waitFor();
    await select("Service 9998");
    await page.getByText("Select all", { exact: true }).click();
    await page.getByText("100 of 10,003 selected").waitFor();
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
