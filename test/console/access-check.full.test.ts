import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { keyOf } from "../support/api/api.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  expectEventually,
  holdRequests,
  horizontalOverflow,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console access check page", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;
  let opened: OpenedPage;
  let page: Page;
  let shopId: string;

  const high = { priority: 1, container: "/pci/high/", transform: "redact" };
  const rules = [
    { priority: 3, description: "All cards", container: "/pci/", transform: "reveal" },
    { ...high, description: "High" },
    { priority: 2, description: "Use", container: "/", transform: "mask" },
  ].map((rule) => ({
    ...rule,
    permissions: [rule.description === "Use" ? "token:use" : "token:read"],
  }));
  const shop = { name: "Web shop", type: "private", permissions: ["token:create"], rules };

  beforeAll(async () => {
    shopId = (await fixture.api.createApplication(fixture.root.key, shop)).id;
  });

  beforeEach(async () => {
    opened = await open(`/why?application=${shopId}`);
    page = opened.page;
  });

  afterEach(() => page.context().close());

  const decision = () => page.getByRole("status").filter({ hasText: /Allowed|Denied/ });
  const steps = () => page.getByRole("list", { name: "Evaluation order" });
  const sample = () => page.getByRole("region", { name: "Sample" }).getByRole("status");

  /** The first line of each step. */
  async function readOutcomes(): Promise<string[]> {
    return steps().locator(".access-check-outcome").allInnerTexts();
  }

  async function check(permission: string, container = ""): Promise<void> {
    await page.getByRole("combobox", { name: "Permission" }).fill(permission);
    await page.getByLabel("Token container").fill(container);
  }

  async function choose(search: string, name: string): Promise<void> {
    await page.getByRole("combobox", { name: "Application" }).fill(search);
    await page.getByRole("option", { name }).click();
  }

  async function pasteKey(key: string): Promise<void> {
    await page.getByRole("radio", { name: "A key" }).check();
    await page.getByLabel("Key", { exact: true }).fill(key);
  }

  it("chooses the marked suggestion with Tab, and goes on to the next control", async () => {
    const permission = page.getByRole("combobox", { name: "Permission" });
    const clear = page.getByRole("button", { name: "Clear Permission" });
    await permission.fill("token:r");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await expectEventually(() => permission.inputValue(), "token:read");
    await waitForFocus(clear);
    // The whole list is long enough to scroll.
    await permission.click();
    await page.getByRole("option").nth(9).waitFor({ state: "attached" });
    await page.keyboard.press("Tab");
    await waitForFocus(clear);
  });

  it("never chooses an application that was found for an earlier text", async () => {
    const application = page.getByRole("combobox", { name: "Application" });
    await application.fill("web");
    await page.getByRole("option", { name: "Web shop" }).waitFor();
    const release = await holdRequests(page, "**/ListApplications");
    await application.fill("another name");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await application.inputValue()).toBe("another name");
    release();
    await application.fill("bootstrap");
    await page.getByRole("option", { name: "Bootstrap" }).click();
    await expectEventually(
      () => new URL(page.url()).search,
      `?application=${fixture.root.applicationId}`,
    );
    await page.getByRole("link", { name: "Why?" }).click();
    await expectEventually(() => application.inputValue(), "");
  });

  it("shows the rules of an application in order, the deciding rule and a sample", async () => {
    await check("token:read", "/pci/");
    await decision().getByText("Allowed (reveal)").waitFor();
    await decision().getByText("Decided by the rule with priority 3 (“All cards”).").waitFor();
    await expectEventually(readOutcomes, [
      "Does not match\ncontainer /pci/high/ does not cover /pci/",
      "Does not match\ndoes not list token:read",
      "Decides\nlists token:read · container /pci/ covers /pci/",
      "Not reached",
    ]);
    await page.getByRole("heading", { name: "Web shop" }).waitFor();
    expect(await steps().locator(".rule-priority").allInnerTexts()).toEqual(["1", "2", "3"]);
    await expectEventually(() => sample().innerText(), "4242 4242 4242 4242");
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.getByLabel("Token container").fill("/pci/high/x");
    await decision().getByText("Allowed (redact)").waitFor();
    await expectEventually(() => sample().innerText(), "nothing");
  });

  it("explains a denial with the message of the service", async () => {
    await check("token:read", "/pcix/");
    await decision().getByText("Denied: no rule matches").waitFor();
    await decision()
      .getByText(/The rules of the private application "Web shop" .* do not match this token/)
      .waitFor();
    await expectEventually(readOutcomes, [
      "Does not match\ncontainer /pci/high/ does not cover /pcix/",
      "Does not match\ndoes not list token:read",
      "Does not match\ncontainer /pci/ does not cover /pcix/",
      "Does not match\ntoken:read is not granted directly",
    ]);
    await check("report:run");
    await decision().getByText("Denied: permission missing").waitFor();
  });

  it("falls back to the direct permission, which masks", async () => {
    await check("token:create");
    await decision().getByText("Allowed (mask)").waitFor();
    await decision().getByText("Decided by the direct permission token:create.").waitFor();
    expect((await readOutcomes()).at(-1)).toBe("Decides\ntoken:create is granted directly");
    await expectEventually(() => sample().innerText(), "•••• 4242");
    await page.getByLabel("Mask").fill("");
    await expectEventually(() => sample().innerText(), "nothing");
    await page.getByLabel("Mask").fill("**42");
    await expectEventually(() => sample().innerText(), "**42");
  });

  it("shows no transform of permissions that concern no token", async () => {
    await page.getByRole("radio", { name: "My own key" }).check();
    await check("application:read");
    await decision().getByText("Allowed", { exact: true }).waitFor();
    expect(await sample().count()).toBe(0);
  });

  it("reports invalid input with the message of the service", async () => {
    await check("token:read", "/a//b/");
    await page
      .getByText("must be a path such as /pci/high/, without empty, . or .. segments")
      .waitFor();
    await expect(decision().count()).resolves.toBe(0);
  });

  it("shows that an application is disabled, and the evaluation without it", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Asleep",
    });
    await fixture.api.disableApplication(fixture.root.key, { id });
    await choose("asl", "Asleep");
    await check("token:read", "/pci/");
    await decision().getByText("Denied: disabled").waitFor();
    await page.getByText("The key is refused before its rules are evaluated.").waitFor();
    await expectEventually(() => new URL(page.url()).searchParams.get("application"), id);
    expect((await readOutcomes())[2]).toMatch(/^Decides/);
    await expectEventually(() => sample().count(), 0);
  });

  it("checks a key with the service and shows the rules of its session and authorizer", async () => {
    const publicShop = { name: "Shop window", type: "public", permissions: ["token:read"] };
    const shopApplication = await fixture.api.createApplication(fixture.root.key, publicShop);
    const everywhere = { priority: 1, container: "/", permissions: ["token:read"] };
    const checkout = {
      name: "Checkout",
      type: "private",
      rules: [{ ...everywhere, transform: "redact" }],
    };
    const backendApplication = await fixture.api.createApplication(fixture.root.key, checkout);
    const { id, sessionKey, nonce } = await fixture.api.createSession(keyOf(shopApplication));
    await pasteKey(sessionKey);
    await check("token:read");
    await page.getByLabel("Token ID").fill("bank-1");
    await decision().getByText("Denied: not authorized").waitFor();
    const condition = { attribute: "id", operator: "starts_with", value: "card-" };
    const rule = { priority: 1, transform: "mask", permissions: ["token:read"] };
    await fixture.api.authorizeSession(keyOf(backendApplication), {
      nonce,
      rules: [{ ...rule, conditions: [condition] }],
    });
    await page.getByLabel("Token ID").fill("bank-2");
    await decision().getByText("Denied: no rule matches").waitFor();
    await steps().getByText("id bank-2 does not start with card-").waitFor();
    await page.getByLabel("Token ID").fill("card-1");
    const limits = page.getByRole("region", { name: "What limits the result" });
    const readSides = () => limits.locator("dl > div").allInnerTexts();
    const expectLimited = async () => {
      await decision().getByText("Allowed (redact)").waitFor();
      await expectEventually(readSides, [
        "Session\nAllowed (mask)\nby the rule with priority 1",
        "Authorizer\nAllowed (redact)\nby the rule with priority 1\nLimits the result",
      ]);
      const [own, authorizer] = [steps().first(), steps().last()];
      await own.getByText("lists token:read · id card-1 starts with card-").waitFor();
      await page.getByRole("heading", { name: "Current permissions of Checkout" }).waitFor();
      await authorizer.getByText("lists token:read · container / covers").waitFor();
      expect(await accessibilityViolations(page)).toEqual([]);
    };
    await expectLimited();
    expect(page.url()).not.toContain("lk_");

    // The same by session id, without the key.
    await page.getByRole("radio", { name: "A session" }).check();
    await page.getByLabel("Session ID").fill(id);
    await expectLimited();

    await fixture.api.updateApplication(fixture.root.key, {
      ...checkout,
      id: backendApplication.id,
      rules: [{ ...everywhere, transform: "reveal" }],
    });
    await pasteKey(sessionKey);
    await decision().getByText("Allowed (mask)").waitFor();
    await expectEventually(readSides, [
      "Session\nAllowed (mask)\nby the rule with priority 1\nLimits the result",
      "Authorizer\nAllowed (reveal)\nby the rule with priority 1",
    ]);

    await fixture.api.updateApplication(fixture.root.key, {
      ...checkout,
      id: backendApplication.id,
      rules: [{ ...everywhere, transform: "mask" }],
    });
    await pasteKey("");
    await pasteKey(sessionKey);
    await limits.getByText("The session and its authorizer both allow the same.").waitFor();
    expect(await limits.getByText("Limits the result", { exact: true }).count()).toBe(0);
  });

  it("checks the address restrictions like the service", async () => {
    const { id } = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "At home",
      allowedCidrs: ["203.0.113.0/24", "2001:db8::/32"],
    });
    await choose("at h", "At home");
    await check("token:create");
    const refused = decision().getByText("Denied: address not allowed");
    const allowed = decision().getByText("Allowed (mask)");
    await refused.waitFor();
    const hint = page.getByText("Fill in Address to see the decision");
    await hint.waitFor();
    for (const [address, expected] of [
      ["203.0.113.7", allowed],
      ["203.0.114.7", refused],
      ["2001:db8::7", allowed],
      ["2001:db9::7", refused],
      ["203.0.113.256", refused],
    ] as const) {
      await page.getByLabel("Address").fill(address);
      await expected.waitFor();
    }
    await hint.waitFor({ state: "detached" });
    await page.getByLabel("Token ID").fill("card%2F42");
    const search = new URLSearchParams({
      application: id,
      permission: "token:create",
      token: "card%2F42",
      address: "203.0.113.256",
    });
    await expectEventually(() => new URL(page.url()).search, `?${search}`);
    search.set("address", "203.0.113.7");
    const shared = await open(`/why?${search}`);
    await shared.page.getByText("Allowed (mask)").first().waitFor();
    expect(await shared.page.getByLabel("Token ID").inputValue()).toBe("card%2F42");
    expect(shared.faults).toEqual([]);
  });

  it("does not put a key pasted into another field in the URL", async () => {
    await page.getByRole("radio", { name: "A session" }).check();
    await page.getByLabel("Session ID").fill(fixture.root.key);
    await page.getByLabel("Token ID").fill(fixture.root.key);
    await check("token:read");
    await page.getByText("Enter a session ID, not a key.").waitFor();
    await expectEventually(
      () => new URL(page.url()).search,
      "?principal=session&permission=token%3Aread",
    );
    await page.getByLabel("Token ID").fill("");
  });

  it("reports unknown and expired keys", async () => {
    await pasteKey("not-an-existing-key");
    await check("token:read");
    await decision().getByText("Denied: unknown key").waitFor();
    const expiresAt = timestampFromMs(fixture.server.clock.now() + 60_000);
    const expiring = await fixture.api.createApplication(fixture.root.key, {
      ...shop,
      name: "Brief",
      expiresAt,
    });
    fixture.server.clock.advance(61_000);
    await pasteKey(keyOf(expiring));
    await decision().getByText("Denied: expired").waitFor();
  });

  it("fits a small screen without errors", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByRole("radio", { name: "My own key" }).check();
    await check("application:read");
    await decision().getByText("Allowed", { exact: true }).waitFor();
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
