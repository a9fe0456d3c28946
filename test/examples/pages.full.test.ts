import { expect, it } from "@jest/globals";
import { createRestApi } from "../support/api/rest.js";
import { describeInBrowser } from "../support/browser/browser.js";
import { reservePorts } from "../support/service/ports.js";
import { useService } from "../support/service/service-process.js";
import { stopExample, useExamples } from "./example-process.js";

describeInBrowser("page and backend example", (browser) => {
  let pagePort: string;
  let otherPort: string;
  const latchkey = useService(async () => {
    [pagePort, otherPort] = (await reservePorts(2)).map(String) as [string, string];
    return { CORS_ORIGINS: `http://localhost:${pagePort}` };
  });
  const runExample = useExamples();

  function start(PAGE_PORT: string) {
    const { url: LATCHKEY_URL, firstKey: SVC_API_KEY } = latchkey;
    return runExample("page", { LATCHKEY_URL, SVC_API_KEY, PAGE_PORT });
  }

  it("shows customers their own cards masked and stores no keys", async () => {
    const example = start(pagePort);
    const [, url = ""] = await example.until(/Open (\S+)/);
    const { page, faults } = await browser.open(url);
    const response = await page.request.get(url);
    expect(response.headers()["content-security-policy"]).toMatch(
      /^default-src 'none'; script-src 'self';/,
    );

    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Card of ben").waitFor();
    expect(await page.getByRole("listitem").allTextContents()).toEqual([
      "Signed in as anna.",
      "Opened a session. Its key does nothing yet.",
      "The backend authorized it.",
      "Session permissions: token:read (mask) where container equals /customers/anna/.",
      "Card of anna: ••••••••••••4242",
      expect.stringMatching(/^Card of ben: 403, The rules of a session of/),
    ]);

    const { backend } = await (await page.request.get(`${url}/settings.json`)).json();
    const isExpected = (fault: string) =>
      [backend, latchkey.url].some((host) => fault.startsWith(`request to another host: ${host}/`));
    expect(faults.filter((fault) => !isExpected(fault))).toEqual([]);
    expect(faults.join()).not.toContain("lk_");
    expect(await page.evaluate("localStorage.length + sessionStorage.length")).toBe(0);

    await stopExample(example);
    const remaining = await createRestApi(latchkey.url).listApplications(latchkey.firstKey);
    expect(remaining.data.map(({ name }) => name)).toEqual(["Bootstrap"]);
  });

  it("names the missing setting if Latchkey refuses the origin", async () => {
    const example = start(otherPort);
    expect(await example.ended()).toBe(1);
    expect(example.output.stderr).toContain(
      `Start it with CORS_ORIGINS=http://localhost:${otherPort}`,
    );
  });
});

describeInBrowser("React example", (browser) => {
  const latchkey = useService();
  const runExample = useExamples();

  it("lists applications and refreshes after creating one", async () => {
    const { url: LATCHKEY_URL, firstKey } = latchkey;
    const [port] = await reservePorts(1);
    const example = runExample("react", { LATCHKEY_URL, PAGE_PORT: String(port), NO_COLOR: "1" });
    const [url] = await example.until(/http:\/\/localhost:\d+/);
    const { page, faults } = await browser.open(url);

    await page.getByLabel("Key").fill(firstKey);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Bootstrap, a management application.").waitFor();
    const items = page.getByRole("listitem");
    await items.first().waitFor();
    expect(await items.count()).toBe(1);

    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("alert").getByText("name: ").waitFor();
    await page.getByLabel("Name").fill("From React");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText(/shown only once: lk_prv_\w+/).waitFor();
    await items.getByText("From React (private): token:read").waitFor();
    expect(await items.count()).toBe(2);

    expect(faults).toEqual([]);
    expect(await page.evaluate("localStorage.length + sessionStorage.length")).toBe(0);
  });
});
