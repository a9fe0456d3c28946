import { afterAll, afterEach, expect, it } from "@jest/globals";
import { createRestApi } from "../support/api/rest.js";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  expectEventually,
  signIn,
  waitForFocus,
} from "../support/browser/console.js";
import { reservePorts } from "../support/service/ports.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { useService } from "../support/service/service-process.js";
import { until } from "../support/until.js";

const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };
const frozenNotice = "The service does not respond. Retrying…";
const offlineNotice = "The service cannot be reached. Retrying…";

/** A browser expression for whether all pages are loaded, with their shared scripts and styles. */
const arePagesLoaded = `(() => {
  const links = [...document.querySelectorAll("link:is([rel=modulepreload], [rel=stylesheet])")];
  return links.some(({ href }) => href.includes("sessions-page")) &&
    links.every(({ href }) => performance.getEntriesByName(href).length > 0);
})()`;

/** A browser expression for whether parts of pages are loaded, before the pages are opened. */
const arePartsLoaded = `["filter-popover", "application-field", "sortable-rules"].every((part) =>
  performance.getEntriesByType("resource").some(({ name }) => name.includes(part + "-")))`;

/** A browser expression for where the sidebar ends, with the menu of the account. */
const sidebarBottom = `document.querySelector(".sidebar").getBoundingClientRect().bottom`;

const running: TestServer[] = [];

afterAll(async () => {
  for (const server of running.reverse()) {
    await server.close();
  }
});

describeInBrowser("console during an outage", (browser) => {
  it("shows a notice, keeps the input and reconnects", async () => {
    const [port = 0] = await reservePorts(1);
    const environment = { PORT: String(port) };
    const storeOwner = await startServer();
    running.push(storeOwner);
    const { store } = storeOwner;
    const root = await storeOwner.createTenant();
    const before = await startServer("lmdb", { store, environment });
    running.push(before);
    const opened = await browser.open(`${before.url}/console/activity`);
    const { page } = opened;
    await page.getByLabel("Remember until this tab is closed").check();
    await signIn(opened, root.key);
    await page.getByText("Live", { exact: true }).waitFor();
    await until(() => page.evaluate<boolean>(arePagesLoaded));

    await before.close();
    running.pop();
    await page.getByText(offlineNotice).waitFor();
    expect(await page.evaluate(sidebarBottom)).toBe(page.viewportSize()?.height);
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole("link", { name: "Activity" }).click();
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("combobox", { name: "Actor", exact: true }).fill("half a name");

    const after = await startServer("lmdb", { store, environment });
    running.push(after);
    await page.getByText(offlineNotice).waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).waitFor();
    const api = createRestApi(after.url);
    await api.createApplication(root.key, shop);
    api.close();
    await page.getByText("Web shop was created by").waitFor();
    await expectEventually(
      () => page.getByRole("combobox", { name: "Actor", exact: true }).inputValue(),
      "half a name",
    );
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).toContain(root.key);
    expect(opened.faults).toEqual([]);
  });
});

describeInBrowser("console pages that were not opened before an outage", (browser) => {
  it("open, with their filters and forms", async () => {
    const server = await startServer();
    running.push(server);
    const root = await server.createTenant();
    const opened = await browser.open(`${server.url}/console/overview`);
    const { page } = opened;
    await signIn(opened, root.key);
    await until(() => page.evaluate<boolean>(arePartsLoaded));

    await server.close();
    running.pop();
    await page.getByText(offlineNotice).waitFor();
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    await page.getByRole("button", { name: "Filter", exact: true }).press("Enter");
    await waitForFocus(page.getByRole("combobox", { name: "Event" }));
    await page.keyboard.press("Escape");
    await waitForFocus(page.getByRole("button", { name: "Filter", exact: true }));
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("combobox", { name: "Search" }).fill("new application");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Add rule" }).click();
    await waitForFocus(page.getByLabel("Description").last());
    await page.getByRole("button", { name: "Create application" }).click();
    await page.getByText("Fix the errors above.").waitFor();
    expect(opened.faults).toEqual([]);
  });
});

describeInBrowser("console of a frozen service", (browser) => {
  const service = useService({ WORKERS: "1" });

  // A stopped process ignores the signal that ends it.
  afterEach(() => void service.process.child.kill("SIGCONT"));

  it("reports that the service does not respond, and recovers", async () => {
    const opened = await browser.open(`${service.url}/console/activity`);
    await signIn(opened, service.firstKey);
    const { page } = opened;
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Try a session" }).click();
    const create = page.getByRole("button", { name: "Create demo applications" });
    await create.waitFor();

    service.process.child.kill("SIGSTOP");
    await create.click();
    await page.getByText(frozenNotice).waitFor({ timeout: 15_000 });
    await page.getByRole("alert").getByText("did not respond within 10 seconds").waitFor();
    await page.getByRole("link", { name: "Activity" }).click();
    await page.getByText("Reconnecting…").waitFor();

    service.process.child.kill("SIGCONT");
    await page.getByText(frozenNotice).waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).waitFor();
    expect(opened.faults).toEqual([]);
  });
});
