import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import type { ApiFailure } from "../support/api/api.js";
import { describeInBrowser, type OpenedPage } from "../support/browser/browser.js";
import {
  accessibilityViolations,
  expectEventually,
  horizontalOverflow,
  useConsole,
  waitForFocus,
} from "../support/browser/console.js";

describeInBrowser("console rule editor", (browser) => {
  const fixture = useConsole(browser);
  const { open } = fixture;
  let opened: OpenedPage;
  let page: Page;

  beforeEach(async () => {
    opened = await open("/applications/new");
    page = opened.page;
  });

  afterEach(() => page.context().close());

  const rule = (position: number) =>
    page.getByRole("group", { name: `Rule ${position}`, exact: true });
  const handle = (position: number) =>
    rule(position).getByRole("button", { name: `Move rule ${position}` });
  const permissionsOf = (card: Locator) =>
    card.getByRole("combobox", { name: "Permissions of the rule" });
  const order = () => page.locator(".rule-title strong").allInnerTexts();

  /** Adds a rule at the end and closes it. */
  async function add(description: string, container: string, permissions: string): Promise<void> {
    const position = (await order()).length + 1;
    await page.getByRole("button", { name: "Add rule" }).click();
    await waitForFocus(rule(position).getByLabel("Description"));
    await page.keyboard.type(description);
    await rule(position).getByLabel("Container").fill(container);
    await permissionsOf(rule(position)).fill(permissions);
    await rule(position)
      .getByRole("button", { name: `Close rule ${position}` })
      .click();
  }

  it("validates while typing, with the messages of the service", async () => {
    const bad = {
      priority: 1,
      container: "/a//b/",
      transform: "mask",
      permissions: ["token:read"],
    };
    const refused = await fixture.api
      .createApplication(fixture.root.key, { name: "a", type: "private", rules: [bad] })
      .catch((error: ApiFailure) => error);
    const [message] = "errors" in refused ? (refused.errors["rules[0].container"] ?? []) : [];
    await page.getByRole("button", { name: "Add rule" }).click();
    await expect(rule(1).getByText("is required").count()).resolves.toBe(0);
    await rule(1).getByLabel("Container").pressSequentially("/a/");
    await expect(rule(1).getByText("1 error").count()).resolves.toBe(0);
    await rule(1).getByLabel("Container").pressSequentially("/b/");
    await rule(1).getByText(`Container ${message}`, { exact: true }).waitFor();
    await rule(1).getByLabel("Container").fill("");
    await rule(1).getByText("is required in the rules of a private application").waitFor();
    await permissionsOf(rule(1)).fill("Token,");
    await rule(1)
      .getByText(/^Token: must be two or three lower-case segments/)
      .waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await rule(1).getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("No rules yet.").waitFor();
  });

  it("accepts permission names by keyboard, from the list and from the clipboard", async () => {
    await page.getByRole("button", { name: "Add rule" }).click();
    const names = () => rule(1).locator(".chips code").allInnerTexts();
    await permissionsOf(rule(1)).fill("token:r");
    await page.keyboard.press("ArrowDown");
    await page.getByRole("option", { name: /^token:read Read tokens\./ }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await expectEventually(names, ["token:read"]);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.evaluate(`navigator.clipboard.writeText("report:run, report:read\\ntoken:read")`);
    await page.keyboard.press("ControlOrMeta+V");
    await rule(1).getByRole("button", { name: "Remove report:read" }).waitFor();
    await expectEventually(names, ["token:read", "report:run", "report:read"]);
    await page.getByText("Latchkey does not know report:run, report:read.").waitFor();
    await page.keyboard.press("Backspace");
    await expectEventually(names, ["token:read", "report:run"]);
    await rule(1).getByRole("button", { name: "Remove token:read" }).press("Enter");
    await expectEventually(names, ["report:run"]);
    await page.keyboard.type("report:wri");
    await rule(1).getByRole("button", { name: "Clear Permissions of the rule" }).click();
    await page.keyboard.type("report:list");
    await page.keyboard.press("Enter");
    await page.keyboard.type("report:copy");
    await page.keyboard.press("Tab");
    await permissionsOf(rule(1)).fill("report:sign ");
    await expectEventually(() => permissionsOf(rule(1)).inputValue(), "");
    await expectEventually(names, ["report:run", "report:list", "report:copy", "report:sign"]);
    expect(opened.faults).toEqual([]);
  });

  it("saves the order after moves by keyboard and by mouse", async () => {
    await add("One", "/one/", "token:read ");
    await add("Two", "/two/", "token:read ");
    await add("Three", "/three/", "token:read token:use ");
    await expectEventually(order, ["One", "Two", "Three"]);

    await handle(3).focus();
    await page.keyboard.press("Space");
    await page.getByText("Picked up rule “Three”, position 3 of 3.").waitFor();
    // The arrow keys work from the next task of the page on.
    await page.evaluate("new Promise((resolve) => setTimeout(resolve))");
    await page.keyboard.press("ArrowUp");
    await page.getByText("rule “Three” moves to position 2 of 3.").waitFor();
    await page.keyboard.press("Space");
    await page.getByText("rule “Three” dropped at position 2 of 3.").waitFor();
    await expectEventually(order, ["One", "Three", "Two"]);

    await drag(handle(1), handle(3));
    await expectEventually(order, ["Three", "Two", "One"]);
    expect(await accessibilityViolations(page)).toEqual([]);

    await page.getByLabel("Name", { exact: true }).fill("Ordered");
    await page.getByRole("button", { name: "Create application" }).click();
    await page.getByRole("dialog").waitFor();
    const { data } = await fixture.api.listApplications(fixture.root.key, {
      namePrefix: "Ordered",
    });
    expect(data[0]?.rules.map(({ priority, container }) => [priority, container])).toEqual([
      [1, "/three/"],
      [2, "/two/"],
      [3, "/one/"],
    ]);
    expect(data[0]?.rules[0]?.permissions).toEqual(["token:read", "token:use"]);
    expect(opened.faults).toEqual([]);
  });

  it("sorts by priority, duplicates rules and fits a small screen", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await add("One", "/one/", "token:read ");
    await add("Two", "/two/", "token:read ");
    await rule(1).getByRole("button", { name: "Edit rule 1" }).click();
    await rule(1).getByLabel("Priority").fill("12");
    await page.keyboard.press("Enter");
    await expectEventually(order, ["Two", "One"]);
    await rule(2).getByRole("button", { name: "Duplicate" }).click();
    await expectEventually(order, ["Two", "One", "One"]);
    await expect(rule(3).getByLabel("Priority").inputValue()).resolves.toBe("13");
    await rule(3).getByLabel("reveal").check();
    await permissionsOf(rule(3)).click();
    const { x = 0, width = 0 } = (await page.getByRole("listbox").boundingBox()) ?? {};
    expect([x >= 0, width > 0, x + width <= 360]).toEqual([true, true, true]);
    expect(await horizontalOverflow(page)).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  async function drag(from: Locator, to: Locator): Promise<void> {
    const [start, end] = [await from.boundingBox(), await to.boundingBox()];
    if (!start || !end) {
      throw new Error("The element is not visible.");
    }
    await page.mouse.move(start.x + 5, start.y + 5);
    await page.mouse.down();
    await page.mouse.move(end.x + 5, end.y + end.height, { steps: 8 });
    await page.getByText("moves to position 3 of 3.").waitFor();
    await page.mouse.up();
  }
});
