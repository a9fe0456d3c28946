import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Bootstrapped } from "../../src/bootstrap.js";
import { barriersIn } from "../support/axe.js";
import { describeInBrowser } from "../support/browser.js";
import { startServer, type TestServer } from "../support/server.js";

describeInBrowser("console sign-in", (browser) => {
  let server: TestServer;
  let root: Bootstrapped;

  beforeAll(async () => {
    server = await startServer();
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  const openConsole = () => browser.open(`${server.url}/console`);

  it("shows the owner of the key and is accessible", async () => {
    const { page, faults } = await openConsole();
    await page.getByLabel("API key").fill(root.key);
    expect(await barriersIn(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "My key" }).waitFor();
    await page.getByText(root.tenantId).waitFor();
    expect(await barriersIn(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
