import { beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import type { Application } from "../../gen/latchkey/v1/application_service_pb.js";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  chooseAction,
  expectEventually,
  holdRequests,
  useConsole,
} from "../support/browser/console.js";

const sessionLists = "**/ListSessions";
const day = 86_400_000;

describeInBrowser("console dialogs before something is revoked", (browser) => {
  const fixture = useConsole(browser);
  let shop: Application;
  let backend: Application;
  let reports: Application;

  beforeAll(async () => {
    const { api, root, server } = fixture;
    const permissions = ["application:read", "application:update"];
    shop = await api.createApplication(root.key, {
      name: "Web shop",
      type: "public",
      permissions: ["token:create"],
    });
    backend = await api.createApplication(root.key, {
      name: "Backend",
      type: "private",
      permissions: ["token:read"],
    });
    reports = await api.createApplication(root.key, {
      name: "Reports",
      type: "management",
      permissions,
    });
    for (const isAuthorized of [true, true, false]) {
      const { nonce } = await api.createSession(keyOf(shop));
      if (isAuthorized) {
        await api.authorizeSession(keyOf(backend), { nonce, permissions: ["token:read"] });
      }
    }
    await server.store.applications.recordUses([
      { applicationId: shop.id, at: server.clock.now() - 3 * day },
      { applicationId: backend.id, at: server.clock.now() - 8 * day },
    ]);
  });

  const consequences = (page: Page): Locator =>
    page.getByRole("dialog").getByRole("region", { name: "Consequences" });

  /** The names and values that a dialog lists. */
  const listed = (page: Page) =>
    page.evaluate<string[]>(`
      [...document.querySelectorAll("[role=dialog] .consequences dl > div")].map((row) =>
        [...row.children].map(({ textContent }) => textContent).join(": "))`);

  const expectListed = (page: Page, expected: readonly string[]) =>
    expectEventually(() => listed(page), expected);

  const confirm = (page: Page, name: string) =>
    page.getByRole("dialog").getByRole("button", { name, exact: true });

  it("say when an application was last used, and which open sessions end with it", async () => {
    const { page, faults } = await fixture.open(`/applications/${shop.id}`);
    await chooseAction(page, "Delete");
    await expectListed(page, ["Last used: 3 days ago", "Open sessions that it opened: 3"]);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.goto(`${fixture.server.url}/console/applications/${backend.id}`);
    await page.getByLabel("API key").fill(fixture.root.key);
    await button(page, "Sign in").click();
    await chooseAction(page, "Disable");
    await expectListed(page, ["Last used: 8 days ago", "Open sessions that it authorized: 2"]);
    await button(page, "Cancel").click();
    await button(page, "Rotate key").click();
    await page.getByLabel("Revoke all current keys now").check();
    await expectListed(page, ["Last used: 8 days ago: Backend"]);
    expect(faults).toEqual([]);
  });

  it("sum up the last use and the sessions of a selection", async () => {
    const { page } = await fixture.open("/applications");
    for (const name of ["Web shop", "Backend", "Reports"]) {
      await page.getByLabel(`Select ${name}`, { exact: true }).check();
    }
    for (const action of ["Disable", "Delete"]) {
      await button(page, action).click();
      await expectListed(page, [
        "Last used: 3 days ago: Web shop",
        "Never used: 1 application",
        "Open sessions that they opened: 3",
        "Open sessions that they authorized: 2",
      ]);
      await button(page, "Cancel").click();
    }
    await button(page, "Rotate keys").click();
    expect(await consequences(page).count()).toBe(0);
    await page.getByLabel("Revoke all current keys now").check();
    await expectListed(page, ["Last used: 3 days ago: Web shop", "Never used: 1 application"]);
  });

  it("count the sessions that a revocation ends, and say which are authorized", async () => {
    const { page } = await fixture.open(`/applications/${shop.id}`);
    await button(page, "Revoke all sessions").click();
    await expectListed(page, [
      "Open sessions that it opened: 3",
      "Open sessions that it authorized: 0",
    ]);
    await button(page, "Cancel").click();
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByLabel("Select all").click();
    await button(page, "Revoke").click();
    await page.getByText("2 authorized, 1 not yet authorized.").waitFor();
  });

  it("do not wait for a count, nor need it", async () => {
    const { page } = await fixture.open(`/applications/${backend.id}`);
    const release = await holdRequests(page, sessionLists);
    await chooseAction(page, "Disable");
    await consequences(page).getByText("counting…").waitFor();
    expect(await confirm(page, "Disable").isEnabled()).toBe(true);
    await button(page, "Cancel").click();
    release();
    await page.unrouteAll({ behavior: "wait" });
    await page.route(sessionLists, (route) =>
      route.fulfill({
        status: 500,
        contentType: "application/json",
        body: '{"code":"internal","message":"Broken."}',
      }),
    );
    await page.reload();
    await page.getByLabel("API key").fill(fixture.root.key);
    await button(page, "Sign in").click();
    await chooseAction(page, "Disable");
    await consequences(page).getByText("could not be counted").waitFor();
    await confirm(page, "Disable").click();
    await page.getByText("disabled", { exact: true }).waitFor();
    await button(page, "Undo").click();
    await page.getByText("enabled", { exact: true }).waitFor();
  });

  it("show that there are more sessions than the service counts", async () => {
    const { page } = await fixture.open(`/applications/${reports.id}`);
    await page.route(sessionLists, async (route) => {
      const response = await route.fetch();
      const { pagination, ...rest } = (await response.json()) as { pagination: object };
      const { totalItems: _, totalPages: __, ...uncounted } = pagination as Record<string, unknown>;
      await route.fulfill({ response, json: { ...rest, pagination: uncounted } });
    });
    await page.getByRole("link", { name: "Applications", exact: true }).first().click();
    await page.getByRole("link", { name: "Web shop", exact: true }).click();
    await chooseAction(page, "Delete");
    await expectListed(page, ["Last used: 3 days ago", "Open sessions that it opened: 10,000+"]);
  });

  it("say that a key may not count sessions", async () => {
    const { page } = await fixture.open(`/applications/${backend.id}`, keyOf(reports));
    await chooseAction(page, "Disable");
    await expectListed(page, [
      "Last used: 8 days ago",
      "Open sessions: not counted: your key lacks session:read",
    ]);
  });
});
