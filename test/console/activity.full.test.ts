import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { Api } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  choose,
  expectEventually,
  horizontalOverflow,
  openSignedIn,
  signIn,
} from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";

describeInBrowser("console activity page", (browser) => {
  let server: TestServer;
  let root: BootstrapResult;
  let api: Api;
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
    api = createRestApi(server.url);
    await api.createApplication(root.key, shop);
    opened = await openSignedIn(browser, `${server.url}/console/activity`, root.key);
    ({ page } = opened);
    await page.getByText("Live", { exact: true }).waitFor();
  });

  afterAll(async () => {
    api.close();
    await server.close();
  });

  const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };
  const events = () => page.getByRole("region", { name: "Events" }).getByRole("listitem");

  it("shows past events as sentences and new events live", async () => {
    await page.getByText("Web shop was created by").waitFor();
    const { id } = await api.createApplication(root.key, { ...shop, name: "Kiosk" });
    await page.getByText("Kiosk was created by").waitFor();
    await api.updateApplication(root.key, {
      id,
      name: "Kiosk",
      permissions: ["token:read"],
      rules: [{ priority: 1, container: "/pci/", transform: "mask", permissions: ["token:use"] }],
    });
    await page.getByText("Kiosk was updated by").click();
    const changes = page.getByRole("region", { name: "Changes" });
    await changes.getByText("removedtoken:create").waitFor();
    await changes.getByText("addedtoken:read").waitFor();
    await changes.getByText("/pci/").waitFor();
    await page.getByText("latchkey.v1.ApplicationService/UpdateApplication").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByText("Kiosk was updated by").click();
  });

  it("marks denied calls with the reason", async () => {
    const { key = "" } = await api.createApplication(root.key, { ...shop, name: "Nosy page" });
    for (let times = 0; times < 3; times++) {
      await expect(api.listApplications(key)).rejects.toThrow("application:read");
    }
    const denial = events().filter({ hasText: "denied: permission_denied" }).first();
    await denial.waitFor();
    expect(await denial.textContent()).toContain("Nosy page was denied access to ListApplications");
  });

  it("filters by the query string and stays live", async () => {
    await choose(page, "Kind", "application.disabled");
    await page.getByText("No events match").waitFor();
    await expectEventually(() => new URL(page.url()).search, "?kind=application.disabled");
    const { id } = await api.createApplication(root.key, { ...shop, name: "Stall" });
    await api.disableApplication(root.key, { id });
    await page.getByText("Stall was disabled by").waitFor();
    await expectEventually(() => events().count(), 1);

    await page.getByLabel("Target").fill(id);
    await choose(page, "Kind", "all");
    await page.getByText("Stall was created by").waitFor();
    await expectEventually(() => events().count(), 2);
    await expectEventually(() => new URL(page.url()).search, `?target=${id}`);

    await page.getByLabel("Until").fill("2001-01-01T00:00:00");
    await page.getByText("No events match").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("Web shop was created by").waitFor();
  });

  it("holds back new events while paused and shows them on resume", async () => {
    await page.getByRole("button", { name: "Pause" }).click();
    await api.createApplication(root.key, { ...shop, name: "Latecomer" });
    await page.getByText(/Paused, \d+ new/).waitFor();
    expect(await page.getByText("Latecomer was created by").count()).toBe(0);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Latecomer was created by").waitFor();
  });

  it("loads older events and fits a narrow window", async () => {
    const { id } = await api.createApplication(root.key, { ...shop, name: "Busy shop" });
    for (let times = 0; times < 30; times++) {
      await api.disableApplication(root.key, { id });
      await api.enableApplication(root.key, { id });
    }
    await page.goto(`${server.url}/console/activity?target=${id}`);
    await signIn(opened, root.key);
    await page.getByText("Busy shop was enabled by").first().waitFor();
    await expectEventually(() => events().count(), 50);
    await page.getByRole("button", { name: "Load more" }).click();
    await page.getByText("Busy shop was created by").waitFor();
    await expectEventually(() => events().count(), 61);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
