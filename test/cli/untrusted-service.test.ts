import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { useCleanup } from "../support/cleanup.js";
import { useCli } from "./run-cli.js";

const cli = useCli();
const stopAfterTest = useCleanup();

/** Starts an HTTP server and returns the environment of commands that call it. */
async function startFake(handle: RequestListener): Promise<Record<string, string>> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  stopAfterTest(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { LATCHKEY_URL: `http://127.0.0.1:${port}`, LATCHKEY_KEY: "key" };
}

const escapes = "\u001b]0;title\u0007\u001b[2J\r\u202e";
const hostile = (text: string) => text + escapes;
const at = timestampFromMs(0);
const application = {
  ...{ id: hostile("id"), name: hostile("name"), key: hostile("lk_prv_"), createdAt: at },
  ...{ type: hostile("private"), status: hostile("enabled"), tenantId: hostile("tenant") },
  ...{ permissions: [hostile("a:b")], createdBy: hostile("by"), version: hostile("1") },
};
const session = {
  ...{ id: hostile("id"), applicationId: hostile("app"), authorizedBy: hostile("by") },
  ...{ state: hostile("open"), permissions: [hostile("a:b")], createdAt: at },
};

/** A service whose responses contain terminal escapes in every text. */
const startHostileService = () =>
  startFake(
    connectNodeAdapter({
      routes(router) {
        router.service(ApplicationService, {
          createApplication: () => application,
          getApplication: () => application,
          listApplications: ({ id }) => ({
            data: id.length > 0 ? id.map((id) => ({ ...application, id })) : [application],
          }),
          listApplicationKeys: () => ({ data: [{ id: hostile("key"), createdAt: at }] }),
          regenerateApplicationKey: () => application,
          disableApplication: () => application,
          enableApplication: () => application,
          deleteApplication: () => ({}),
        });
        router.service(SessionService, {
          createSession: () => ({
            ...{ id: hostile("id"), sessionKey: hostile("lk_ses_"), nonce: hostile("lk_non_") },
            expiresAt: at,
          }),
          getSession: () => session,
          listSessions: () => ({ data: [session] }),
        });
        router.service(AccessService, {
          whoAmI: () => ({ ...application, applicationId: hostile("id") }),
        });
      },
    }),
  );

const id = "0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d";

describe("the responses of a hostile service", () => {
  it.each([
    ["apps create x --type private --permission a:b", "lk_prv_"],
    ["apps create x --type private --permission a:b --key-only", "lk_prv_"],
    ["apps ls", "name"],
    [`apps get ${id}`, "by"],
    [`apps keys ${id}`, "key"],
    [`apps rotate ${id}`, "lk_prv_"],
    [`apps disable ${id} --yes`, "enabled"],
    [`apps enable ${id}`, "enabled"],
    [`apps rm ${id} --yes`, "id"],
    ["sessions open", "lk_non_"],
    [`sessions get ${id}`, "open"],
    ["sessions ls", "open"],
    ["whoami", "id"],
  ])("do not control the terminal: latchkey %s", async (line, shown) => {
    const { code, stdout, stderr } = await cli.runInProcess(
      line.split(" "),
      await startHostileService(),
    );
    expect(code).toBe(0);
    expect(stdout + stderr).not.toMatch(/[^\P{C}\n]/u);
    expect(stdout).toContain(`${shown}\\u{1b}]0;title\\u{7}`);
  });

  it("do not control the terminal that later shows a file with a new key", async () => {
    const path = cli.path("new.key");
    const create = ["apps", "create", "x", "--type", "private", "--permission", "a:b"];
    const environment = await startHostileService();
    const { code } = await cli.runInProcess([...create, "--output-key", path], environment);
    expect(code).toBe(0);
    expect(await readFile(path, "utf8")).toMatch(/^lk_prv_\\u\{1b\}\]0;[!-~]*\n$/);
  });

  it("do not control the terminal: latchkey init", async () => {
    const { LATCHKEY_URL = "" } = await startHostileService();
    const args = ["init", "--name", "x", "--url", LATCHKEY_URL];
    const { stdout, stderr } = await cli.run(args, { input: "key", cwd: cli.path("") });
    expect(stdout).toContain("  lk_prv_\\u{1b}]0;title");
    expect(stdout + stderr).not.toMatch(/[^\P{C}\n]/u);
  });

  it("are refused if they are too large", async () => {
    const environment = await startFake((request, response) => {
      request.resume();
      response.writeHead(200, {
        "Content-Type": "application/proto",
        "Content-Length": 128 * 1024 * 1024 + 1,
      });
      response.flushHeaders();
    });
    expect(await cli.runInProcess(["whoami", "--timeout", "1m"], environment)).toMatchObject({
      code: 1,
      stderr: `latchkey: ${environment.LATCHKEY_URL} sent a response that is too large.\n`,
    });
  });
});

describe("a server that is not a Latchkey service", () => {
  it.each<[string, RequestListener]>([
    ["an error page", (_, response) => response.writeHead(404).end("<html>")],
    ["a page", (_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end("")],
    ["another protocol", ({ socket }) => socket.end("220 ready\r\n")],
  ])("is reported if it responds with %s", async (_, handle) => {
    const environment = await startFake(handle);
    expect(await cli.runInProcess(["whoami"], environment)).toMatchObject({
      code: 7,
      stderr:
        `latchkey: ${environment.LATCHKEY_URL} is not a Latchkey service.\n` +
        "Pass another URL with --url, LATCHKEY_URL or a profile.\n",
    });
  });

  it("is considered if it closes the connection", async () => {
    const environment = await startFake(({ socket }) => socket.destroy());
    expect(await cli.runInProcess(["whoami"], environment)).toMatchObject({
      code: 7,
      stderr: expect.stringContaining(" closed the connection, or is not a Latchkey service.\n"),
    });
  });

  it("is considered if a proxy responds with an error", async () => {
    const environment = await startFake((_, response) => response.writeHead(502).end());
    expect(await cli.runInProcess(["whoami"], environment)).toMatchObject({
      code: 7,
      stderr: expect.stringContaining(" is unreachable or is not a Latchkey service: HTTP 502\n"),
    });
  });
});
