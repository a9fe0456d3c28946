import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { describeInBrowser } from "../support/browser/browser.js";
import { accessibilityViolations } from "../support/browser/console.js";
import { startServer, type TestServer } from "../support/service/server.js";

describeInBrowser("console sign-in", (browser) => {
  let server: TestServer;
  let root: BootstrapResult;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  const openConsole = () => browser.open(`${server.url}/console`);

  it("shows the owner of the key and is accessible", async () => {
    const { page, faults } = await openConsole();
    await page.getByLabel("API key").fill(root.key);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "My key" }).waitFor();
    await page.getByText(root.tenantId).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
