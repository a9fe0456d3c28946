import { expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  button,
  choose,
  expectEventually,
  holdRequests,
  horizontalOverflow,
  signIn,
  signOut,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console session pages", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;

  const shop = { name: "Web shop", type: "public", permissions: ["token:create"] };

  const rowOf = (page: Page, sessionId: string) =>
    page.getByRole("row").filter({ hasText: sessionId.slice(-8) });

  it("shows the lifecycle of a session, also live to others", async () => {
    const watcher = await open("/sessions");
    await watcher.page.getByText("No open sessions").waitFor();
    await watcher.page.getByText("Live", { exact: true }).waitFor();
    const actor = await open("/sessions/try");
    const { page } = actor;

    await button(page, "Create demo applications").click();
    await page.getByText("Demo shop and Demo backend are ready.").waitFor();
    // Enter runs the next step.
    await waitForFocus(button(page, "Open a session"));
    await page.keyboard.press("Enter");
    const card = page.getByRole("region", { name: "Your session" });
    await card.getByText("unauthorized").waitFor();
    const id = (await card.locator("dd").last().textContent()) ?? "";
    const row = rowOf(watcher.page, id);
    await row.getByText("unauthorized").waitFor();
    await watcher.page.getByText("Demo shop (temporary)").first().waitFor();

    await button(page, "Use the session key").click();
    await page.getByText("Refused, as expected: the session is not authorized yet.").waitFor();
    await page.getByText("403 Forbidden").waitFor();
    const refusal = page.locator("pre", { hasText: '"type": "/docs/errors/permission_denied"' });
    await refusal.filter({ hasText: '"request_id": "' }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.getByText("Choose permissions, rules and expiry").click();
    await button(page, "Add rule").click();
    await button(page, "Remove condition").click();
    await waitForFocus(button(page, "Add condition"));
    await button(page, "Remove").click();
    await choose(page, "Expires", "in 1 hour");
    expect(await accessibilityViolations(page)).toEqual([]);
    await button(page, "Authorize the session").click();
    await page.getByText("The session is authorized, and its nonce is used up.").waitFor();
    expect(await card.textContent()).not.toContain("unauthorized");
    await row.getByText("authorized", { exact: true }).waitFor();
    await row.getByText(/^in (1:00|5\d):\d\d$/).waitFor();

    await button(page, "Use the session key again").click();
    await page.getByText("Allowed: the session now has the permissions").waitFor();
    await button(page, "Use the nonce again").click();
    await page.getByText("Refused, as expected: a nonce works only once.").waitFor();
    await page.getByText("409 Conflict").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.getByRole("link", { name: "See it in Sessions" }).click();
    const dialog = page.getByRole("dialog", { name: "Session" });
    await dialog.getByText("Demo backend (temporary)").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Revoke session" }).click();
    await dialog.getByRole("button", { name: "Revoke now" }).click();
    await dialog.getByText("This session expired or was revoked.").waitFor();
    await row.waitFor({ state: "detached" });

    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: "Try a session" }).first().click();
    await page.getByText("The session expired or was revoked.").waitFor();
    const [demoShop] = (
      await fixture.api.listApplications(fixture.root.key, { namePrefix: "Demo shop" })
    ).data;
    await fixture.api.deleteApplication(fixture.root.key, { id: demoShop?.id ?? "" });
    await button(page, "Delete the demo applications").first().click();
    await button(page, "Create demo applications").waitFor();
    const { data } = await fixture.api.listApplications(fixture.root.key, { namePrefix: "Demo" });
    expect(data).toEqual([]);
    expect([...actor.faults, ...watcher.faults]).toEqual([]);
  });

  it("runs the demo once, also across pages, and stops on request and at sign-out", async () => {
    const { key } = await fixture.server.createTenant();
    const opened = await open("/sessions/try", key);
    const { page } = opened;
    const creations = "**/latchkey.v1.ApplicationService/CreateApplication";
    // The service creates it, but the response is lost.
    await page.route(creations, async (route) => {
      const response = await route.fetch();
      const isBackend = route.request().postData()?.includes("Demo backend");
      await (isBackend ? route.abort() : route.fulfill({ response }));
    });
    await button(page, "Create demo applications").click();
    await page.getByRole("alert").waitFor();
    await page.unroute(creations);

    const authorizations = "**/latchkey.v1.SessionService/AuthorizeSession";
    const releaseAtSignOut = await holdRequests(page, authorizations);
    await button(page, "Run all steps").click();
    const isRunning = () => page.locator("button[aria-busy]").count();
    await button(page, "Authorize the session").and(page.locator("[aria-busy]")).waitFor();
    expect(await button(page, "Delete the demo applications").isDisabled()).toBe(true);
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
    await page.goBack();
    await expectEventually(isRunning, 1);
    await signOut(page);
    releaseAtSignOut();

    await signIn(opened, key);
    await page.getByRole("link", { name: "Try a session" }).first().click();
    const releaseAtStop = await holdRequests(page, authorizations);
    const isAuthorizing = page.waitForRequest(authorizations);
    await button(page, "Run all steps").click();
    await isAuthorizing;
    await waitForFocus(button(page, "Stop"));
    await page.keyboard.press("Enter");
    releaseAtStop();
    await waitForFocus(button(page, "Use the session key again"));
    await button(page, "Run all steps").click();
    await page.getByRole("link", { name: "See it in Sessions" }).waitFor();
    const { data } = await fixture.api.listApplications(key, { namePrefix: "Demo" });
    const names = ["Demo backend (temporary)", "Demo shop (temporary)"];
    expect(data.map(({ name }) => name).sort()).toEqual(names.flatMap((name) => [name, name]));
    expect(opened.faults).toEqual([]);
  });

  it("masks secrets until revealed, and stops using the key of a revoked session", async () => {
    const application = await fixture.api.createApplication(fixture.root.key, shop);
    const opened = await browser.open(`${fixture.server.url}/console/sessions/try`);
    const { page } = opened;
    await page.clock.install();
    await signIn(opened, fixture.root.key);
    await button(page, "Use keys of my own applications").click();
    await page.getByLabel("Public key").fill(keyOf(application));
    await page.getByRole("button", { name: "Open a session" }).click();
    await page.getByRole("button", { name: "Show session key" }).waitFor();
    expect(await page.locator("body").textContent()).not.toMatch(/lk_(ses|non|pub)_\w/);
    await page.getByRole("button", { name: "Show session key" }).click();
    expect(await page.locator("body").textContent()).toMatch(/lk_ses_\w/);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);

    await fixture.api.deleteApplication(fixture.root.key, { id: application.id });
    await page.clock.fastForward(5_000);
    await page.getByText("The session expired or was revoked.").waitFor();
    const keys: string[] = [];
    page.on("request", (request) => keys.push(request.headers()["svc-api-key"] ?? ""));
    await page.clock.fastForward(60_000);
    await expectEventually(() => keys.includes(fixture.root.key), true);
    expect(keys.filter((key) => key.startsWith("lk_ses_"))).toEqual([]);
  });

  it("filters by the query string, loads more and revokes all sessions of an application", async () => {
    const busy = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Busy shop",
    });
    const quiet = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Quiet shop",
    });
    const other = await fixture.api.createSession(keyOf(quiet));
    for (let count = 0; count < 60; count++) {
      await fixture.api.createSession(keyOf(busy));
    }
    const opened = await open(`/sessions?application=${busy.id}&state=unauthorized`);
    const { page } = opened;
    await page.getByText("Busy shop").first().waitFor();
    await expectEventually(() => page.getByRole("row").count(), 51);
    await page.getByText("Showing 50 of 60 open sessions").waitFor();
    await page.getByRole("button", { name: "Load more" }).click();
    await page.getByRole("button", { name: "Load more" }).waitFor({ state: "detached" });
    await page.getByText("60 open sessions", { exact: true }).waitFor();
    await expectEventually(() => page.getByRole("row").count(), 61);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("checkbox").nth(1).check();
    await page.getByRole("checkbox").nth(2).check();
    await page.getByText("2 of 60 selected").waitFor();
    await button(page, "Revoke").click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("2 revoked.").waitFor();
    await button(page, "Done").click();
    await expectEventually(() => page.getByRole("row").count(), 59);

    await page.getByRole("button", { name: "Revoke all sessions" }).click();
    await page.getByRole("button", { name: "Revoke all", exact: true }).click();
    await page.getByText("No open sessions match").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await rowOf(page, other.id).waitFor();
    await expectEventually(() => new URL(page.url()).search, "");

    await button(page, "Filter").click();
    await page.getByRole("combobox", { name: "Application" }).fill("iet sh");
    await page.getByRole("option", { name: "Quiet shop" }).click();
    await expectEventually(() => new URL(page.url()).search, `?application=${quiet.id}`);
    await rowOf(page, other.id).waitFor();
    await button(page, "Clear Application").click();

    await page.getByRole("combobox", { name: "Authorized by" }).fill(fixture.root.applicationId);
    await page.getByText("No open sessions match").waitFor();
    await page.keyboard.press("Escape");
    await button(page, "Remove filter Authorized by").click();
    await rowOf(page, other.id).waitFor();
    await expectEventually(() => new URL(page.url()).search, "");
    expect(opened.faults).toEqual([]);
  });

  it("polls for a key without permission to watch events", async () => {
    const viewer = await fixture.api.createApplication(fixture.root.key, {
      name: "Viewer",
      type: "private",
      permissions: ["session:read"],
    });
    const { page, faults } = await open("/sessions", keyOf(viewer));
    await page.getByText("Refreshes every 3 seconds").waitFor();
    const { id } = await fixture.api.createSession(
      keyOf(await fixture.api.createApplication(fixture.root.key, shop)),
    );
    await rowOf(page, id).getByRole("button").click();
    await page.getByRole("dialog").getByText(id).waitFor();
    expect(await page.getByRole("button", { name: "Revoke session" }).count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Overview" }).click();
    await page
      .getByRole("listitem")
      .filter({ hasText: /^Open sessions\d/ })
      .waitFor();
    expect(faults).toEqual([]);
  });
});
