import { readFile } from "node:fs/promises";
import { beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  choose,
  expectEventually,
  holdRequests,
  horizontalOverflow,
  signIn,
  useConsole,
} from "../support/browser/console.js";

describeInBrowser("console activity page", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    await fixture.api.createApplication(fixture.root.key, shop);
    opened = await open("/activity");
    ({ page } = opened);
    await page.getByText("Live", { exact: true }).waitFor();
  });

  const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };
  /** The rows without the header. */
  const events = () => page.getByRole("table", { name: "Events" }).locator("tbody tr");
  const query = () => new URL(page.url()).search;

  it("shows past events as sentences, new events live, and their changes", async () => {
    await page.getByText("Web shop was created by").waitFor();
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Kiosk",
    });
    await page.getByText("Kiosk was created by Bootstrap").waitFor();
    await fixture.api.updateApplication(fixture.root.key, {
      id,
      name: "Kiosk",
      permissions: ["token:read"],
      rules: [{ priority: 1, container: "/pci/", transform: "mask", permissions: ["token:use"] }],
    });
    const updated = events().filter({ hasText: "Kiosk was updated by" });
    await updated.getByRole("cell", { name: "Update application" }).waitFor();
    await updated.getByRole("link").click();
    const dialog = page.getByRole("dialog", { name: "Application updated" });
    const changes = dialog.getByRole("region", { name: "Changes" });
    await changes.getByText("removedtoken:create").waitFor();
    await changes.getByText("addedtoken:read").waitFor();
    await changes.getByText("/pci/").waitFor();
    await dialog.getByText("latchkey.v1.ApplicationService/UpdateApplication").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Same target" }).click();
    await expectEventually(query, `?target=${id}`);
    await expectEventually(() => events().count(), 2);
  });

  it("keeps the names of renamed and deleted applications", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Old till",
    });
    await page.goto(`${fixture.server.url}/console/activity?target=${id}`);
    await signIn(opened, fixture.root.key);
    await fixture.api.updateApplication(fixture.root.key, {
      id,
      name: "New till",
      permissions: ["token:use"],
    });
    await page.getByText("New till was updated by").waitFor();
    await page.getByText("Old till was created by").click();
    await page.getByText("(then Old till)").waitFor();
    await button(page, "Close").click();
    await fixture.api.deleteApplication(fixture.root.key, { id });
    await page.getByText("New till was deleted by").click();
    const dialog = page.getByRole("dialog", { name: "Application deleted" });
    await dialog.getByText("(deleted)").waitFor();
    await button(page, "Close").click();
    await page.getByText("Old till was created by").waitFor();
  });

  it("marks denied calls with the method and the reason", async () => {
    await button(page, "Remove filter Target").click();
    const { key = "", id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Nosy page",
    });
    for (let times = 0; times < 3; times++) {
      await expect(fixture.api.listApplications(key)).rejects.toThrow("application:read");
    }
    const denial = events().filter({ hasText: "permission denied" }).first();
    await denial.waitFor();
    expect(await denial.textContent()).toContain("Nosy page was denied: List applications");

    const tab = await open(`/applications/${id}`);
    const card = tab.page.getByRole("region", { name: "Recent activity" });
    await card.getByText("3 denied in the last hour").waitFor();
    await card.getByText("Nosy page was created by").waitFor();
    await card.getByRole("list", { name: "Latest denials" }).getByRole("link").first().click();
    await tab.page.getByRole("dialog", { name: "Access denied" }).waitFor();
    await tab.page.goto(`${fixture.server.url}/console/applications/${id}`);
    await signIn(tab, fixture.root.key);
    await card.getByText("3 denied in the last hour").click();
    await expectEventually(
      () => new URL(tab.page.url()).search,
      `?kind=access.denied&last=1h&principal=${id}`,
    );
    await tab.page.getByText("Nosy page was denied: List applications").first().waitFor();
    expect(tab.faults).toEqual([]);
    await tab.page.close();
  });

  /** Toggles kinds in the list of the filter. */
  async function chooseKinds(...kinds: readonly string[]): Promise<void> {
    const list = page.getByRole("combobox", { name: "Event", exact: true });
    await list.click();
    for (const kind of kinds) {
      await page.getByRole("option", { name: kind, exact: true }).click();
    }
    await list.click();
    await page.getByRole("option").first().waitFor({ state: "hidden" });
  }

  /** Closes the filters. An open list in them takes the first Escape. */
  async function closeFilters(): Promise<void> {
    await expectEventually(async () => {
      await page.keyboard.press("Escape");
      return page.getByRole("dialog", { name: "Filters" }).isVisible();
    }, false);
  }

  it("filters by request, address, method, reason and several kinds", async () => {
    const { key = "", id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Refused page",
    });
    await fetch(`${fixture.server.url}/sessions/${id}`, {
      headers: { "svc-api-key": key, "x-request-id": "console-refused-1" },
    });
    await page.getByText("Refused page was denied: Get session").waitFor();
    await button(page, "Filter").click();
    const field = (name: string) => page.getByRole("textbox", { name });
    await field("Request ID").fill("console-refused-1");
    await expectEventually(query, "?requestId=console-refused-1");
    await expectEventually(() => events().count(), 1);
    await page.getByText("Refused page was denied: Get session").waitFor();
    await field("Address").fill("nowhere");
    await page.getByText("Address must be an IP address such as").waitFor();
    await field("Address").fill("127.0.0.1");
    await field("Method").fill("GetSession");
    await field("Reason").fill("permission_denied");
    await chooseKinds("Access denied", "Application created");
    await expectEventually(
      query,
      "?kind=access.denied+application.created&requestId=console-refused-1&address=127.0.0.1" +
        "&method=GetSession&reason=permission_denied",
    );
    await expectEventually(() => events().count(), 1);
    await field("Reason").fill(key);
    await page.getByText("contains a key, and keys must not be in URLs").waitFor();
    expect(page.url()).not.toContain("lk_");
    await field("Reason").fill("");
    for (const name of ["Request ID", "Address", "Method"]) {
      await field(name).fill("");
    }
    await page.getByRole("combobox", { name: "Target or actor" }).fill(id);
    await expectEventually(query, `?kind=access.denied+application.created&principal=${id}`);
    await expectEventually(() => events().count(), 2);
    await closeFilters();
    await button(page, "Clear all").click();
    await expectEventually(query, "");
  });

  it("opens an event by its own address, also one that the list does not have", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Linked shop",
    });
    const { data } = await fixture.api.listEvents(fixture.root.key, { target: id });
    const path = `/console/activity/${data[0]?.id}`;
    await page.getByText("Linked shop was created by").click();
    await page.getByRole("dialog", { name: "Application created" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(path);
    await button(page, "Close").click();
    await expectEventually(() => new URL(page.url()).pathname, "/console/activity");

    const tab = await open(`${path.replace("/console", "")}?kind=key.expired`);
    const dialog = tab.page.getByRole("dialog", { name: "Application created" });
    await dialog.getByText(String(data[0]?.requestId)).waitFor();
    expect(await accessibilityViolations(tab.page)).toEqual([]);
    await dialog.getByRole("button", { name: "Same request" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(new URL(tab.page.url()).pathname).toBe("/console/activity");
    await tab.page.goto(`${fixture.server.url}/console/activity/${id}`);
    await signIn(tab, fixture.root.key);
    await tab.page.getByText("There is no event with this ID").waitFor();
    expect(tab.faults).toEqual([]);
    await tab.page.close();
  });

  it("says which sessions were revoked, if not all", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Stand",
    });
    await fixture.api.revokeAllSessions(fixture.root.key, { id, openedOnly: true });
    await page.getByText("All sessions that Stand opened were revoked").click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByText("the sessions that it opened, but not those that it authorized")
      .waitFor();
    await button(page, "Close").click();
  });

  it("searches older events by itself until it finds enough or is stopped", async () => {
    let calls = 0;
    let held = () => {};
    const isHeld = new Promise<void>((resolve) => {
      held = resolve;
    });
    await page.route("**/latchkey.v1.EventService/ListEvents", async (route) => {
      calls++;
      if (calls === 3) {
        await isHeld;
      }
      const { start: _start, ...request } = route.request().postDataJSON();
      await (calls < 4
        ? route.fulfill({ json: { pagination: { pageSize: 50, next: `page ${calls}` }, data: [] } })
        : route.continue({ postData: JSON.stringify(request) }));
    });
    await page.goto(`${fixture.server.url}/console/activity?kind=application.created`);
    await signIn(opened, fixture.root.key);
    await page.getByText("Searching… 0 events found so far").waitFor();
    await button(page, "Stop").click();
    held();
    await page.getByText("Stopped before the end, 0 events found so far").waitFor();
    await expectEventually(() => calls, 3);
    await button(page, "Continue the search").click();
    await page.getByText("Web shop was created by").waitFor();
    expect(calls).toBe(4);
    await page.unroute("**/latchkey.v1.EventService/ListEvents");
    await button(page, "Clear all").click();
  });

  it("matches new events to an address in every form that the service accepts", async () => {
    await page.goto(`${fixture.server.url}/console/activity?address=127.0.0.1:51234`);
    await signIn(opened, fixture.root.key);
    await page.getByText("Web shop was created by").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await fixture.api.createApplication(fixture.root.key, { ...shop, name: "Near shop" });
    await page.getByText("Near shop was created by").waitFor();
    await page.goto(`${fixture.server.url}/console/activity`);
    await signIn(opened, fixture.root.key);
  });

  it("filters by the query string and stays live", async () => {
    await button(page, "Filter").click();
    await chooseKinds("Application disabled");
    await page.getByText("No events match").waitFor();
    await expectEventually(query, "?kind=application.disabled");
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Stall",
    });
    await fixture.api.disableApplication(fixture.root.key, { id });
    await page.getByText("Stall was disabled by").waitFor();
    await expectEventually(() => events().count(), 1);

    await choose(page, "Time", "Last hour");
    await expectEventually(query, "?kind=application.disabled&last=1h");
    await page.getByText("Stall was disabled by").waitFor();
    const entries = await page.evaluate("history.length");
    await page.getByLabel("Until").fill("2001-01-01T00:00:00");
    await page.getByText("No events match").waitFor();
    expect(await page.evaluate("history.length")).toBe(entries);
    expect(query()).toMatch(/^\?kind=application\.disabled&until=.+$/);
    await page.keyboard.press("Escape");
    await button(page, "Remove filter Until").click();
    await page.getByText("Stall was disabled by").waitFor();
    await page.goBack();
    await page.getByText("Jan 1, 2001, 00:00:00").waitFor();
    await button(page, "Clear filters").click();
    await expectEventually(query, "");
    await page.getByText("Web shop was created by").waitFor();
  });

  it("exports the events that match the filters, without running formulas, until canceled", async () => {
    const name = '=HYPERLINK("https://attacker.example")';
    const { id } = await fixture.api.createApplication(fixture.root.key, { ...shop, name });
    await button(page, "Filter").click();
    await page.getByRole("combobox", { name: "Target", exact: true }).fill(id);
    await expectEventually(() => events().count(), 1);
    await page.getByText("1 event", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    const save = async (format: string) => {
      await button(page, "Export").click();
      await page.getByText("The newest 10,000 events that match the filters").waitFor();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: format }).click(),
      ]);
      await page.getByText("Exported 1 event").last().waitFor();
      const content = await readFile(await download.path(), "utf8");
      return { name: download.suggestedFilename(), content };
    };
    const csv = await save("CSV");
    expect(csv.name).toMatch(/^latchkey-events-\d{4}-\d\d-\d\d\.csv$/);
    expect(csv.content).toContain(`"'=HYPERLINK(""https://attacker.example"")"`);
    const lines = await save("JSON lines");
    expect(lines.name).toMatch(/\.jsonl$/);
    expect(JSON.parse(lines.content)).toMatchObject({ target: { application_id: id, name } });

    const release = await holdRequests(page, "**/latchkey.v1.EventService/ListEvents**");
    await button(page, "Export").click();
    await page.getByRole("menuitem", { name: "CSV" }).click();
    await page.getByText("Exporting 0…").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Export canceled").waitFor();
    await button(page, "Export").waitFor();
    release();
    await button(page, "Clear all").click();
  });

  it("holds back new events while paused and shows them on resume", async () => {
    await button(page, "Pause").click();
    await fixture.api.createApplication(fixture.root.key, { ...shop, name: "Latecomer" });
    await page.getByText(/Paused, \d+ new/).waitFor();
    expect(await page.getByText("Latecomer was created by").count()).toBe(0);
    await button(page, "Resume").click();
    await page.getByText("Latecomer was created by").waitFor();
  });

  it("loads older events and fits a narrow window", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Busy shop",
    });
    for (let times = 0; times < 30; times++) {
      await fixture.api.disableApplication(fixture.root.key, { id });
      await fixture.api.enableApplication(fixture.root.key, { id });
    }
    await expectEventually(() => page.getByText("Busy shop was enabled by").count(), 30);
    await button(page, "Filter").click();
    await page.getByRole("combobox", { name: "Target", exact: true }).fill(id);
    await expectEventually(query, `?target=${id}`);
    await page.keyboard.press("Escape");
    await expectEventually(() => events().count(), 50);
    await page.getByText("Showing 50 of 61 events").waitFor();
    await button(page, "Load more").click();
    await page.getByText("Busy shop was created by").waitFor();
    await expectEventually(() => events().count(), 61);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
