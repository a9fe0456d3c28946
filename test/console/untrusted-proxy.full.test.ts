import { expect, it } from "@jest/globals";
import { describeInBrowser } from "../support/browser/browser.js";
import { useConsole } from "../support/browser/console.js";
import { send } from "../support/http/http.js";

describeInBrowser("console behind a proxy that is not trusted", (browser) => {
  const fixture = useConsole(browser);

  it("says so once forwarding headers arrive", async () => {
    const { server, root } = fixture;
    const text = "forwarding headers from a peer that is not in TRUSTED_PROXIES";
    const before = await fixture.open("/overview");
    await before.page.getByText("Open sessions").first().waitFor();
    expect(await before.page.getByText(text).count()).toBe(0);
    const headers = { "svc-api-key": root.key, "x-forwarded-for": "203.0.113.7" };
    await send(server, "/whoami", { headers });
    const after = await fixture.open("/overview");
    await after.page.getByText(text).waitFor();
  });
});
