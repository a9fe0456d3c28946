import { beforeEach, describe, expect, it } from "@jest/globals";
import { reservePorts } from "../support/service/ports.js";
import { useService } from "../support/service/service-process.js";
import { useExamples } from "./example-process.js";

describe("backend example", () => {
  let page: string;
  const latchkey = useService(async () => {
    const [port] = await reservePorts(1);
    page = `http://localhost:${port}`;
    return { CORS_ORIGINS: page };
  });
  const runExample = useExamples();
  let backend: string;
  let session: { session_key: string; nonce: string };
  /** The login cookie of a customer. */
  let cookie: string;

  beforeEach(async () => {
    const { url, firstKey } = latchkey;
    const port = new URL(page).port;
    const environment = { LATCHKEY_URL: url, SVC_API_KEY: firstKey, PAGE_PORT: port };
    await runExample("page", environment).until(/Open (\S+)/);
    const settings = (await (await fetch(`${page}/settings.json`)).json()) as {
      backend: string;
      publicKey: string;
    };
    ({ backend } = settings);
    const headers = { "svc-api-key": settings.publicKey, origin: page };
    const opened = await fetch(`${url}/sessions`, { method: "POST", headers });
    session = (await opened.json()) as typeof session;
    const login = await post("/login", { origin: page }, { customer: "anna" });
    [cookie = ""] = (login.headers.get("set-cookie") ?? "").split(";");
  });

  function post(path: string, headers: Record<string, string>, body?: object): Promise<Response> {
    return fetch(`${backend}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body ? JSON.stringify(body) : null,
    });
  }

  async function isAuthorized(): Promise<boolean> {
    const headers = { "svc-api-key": session.session_key, origin: page };
    const self = await (await fetch(`${latchkey.url}/whoami`, { headers })).json();
    return (self as { authorized: boolean }).authorized;
  }

  it("authorizes a nonce only for a signed-in customer of its own page", async () => {
    const path = "/latchkey-session";
    const { nonce } = session;
    const inQuery = `${path}?nonce=${nonce}`;
    const signedIn = { origin: page, cookie };
    const unknownLogin = "login=00000000000000000000000000000000";
    const form = { ...signedIn, "content-type": "application/x-www-form-urlencoded" };
    const refused: [status: number, send: () => Promise<Response>][] = [
      [401, () => post(path, { origin: page }, { nonce })],
      [401, () => post(path, { origin: page, cookie: unknownLogin }, { nonce })],
      [403, () => post(path, { cookie }, { nonce })],
      [403, () => post(path, { origin: "null", cookie }, { nonce })],
      [403, () => post(path, { origin: "https://attacker.example", cookie }, { nonce })],
      [400, () => post(inQuery, signedIn)],
      [400, () => post(inQuery, signedIn, { nonce: { nonce } })],
      [400, () => post(inQuery, form)],
      [404, () => fetch(`${backend}${inQuery}`, { headers: signedIn })],
    ];
    for (const [status, send] of refused) {
      expect((await send()).status).toBe(status);
      expect(await isAuthorized()).toBe(false);
    }
    expect((await post(path, signedIn, { nonce })).status).toBe(204);
    expect(await isAuthorized()).toBe(true);
  });
});
