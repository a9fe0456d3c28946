import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { buildSync } from "esbuild";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { createLatchkeyClient as createBrowserClient } from "../../src/client/browser.js";
import type { LatchkeyClient } from "../../src/client/client.js";
import { createLatchkeyClient as createNodeClient } from "../../src/client/create-guard.js";
import type { ClientOptions } from "../../src/contract/client-interceptors.js";
import { problemOf } from "../../src/contract/problem-report.js";
import { startServer, type TestServer } from "../support/service/server.js";

const keyHeader = "X-Our-Key";

let server: TestServer;
let key: string;
let cleanups: (() => void)[];

beforeAll(async () => {
  server = await startServer("lmdb", { environment: { KEY_HEADER: keyHeader } });
  key = (await server.createTenant()).key;
  cleanups = [];
});

afterAll(async () => {
  for (const cleanup of cleanups) {
    cleanup();
  }
  await server.close();
});

/** Creates a client that is closed after the tests. */
function openNodeClient(options: ClientOptions): LatchkeyClient {
  const client = createNodeClient(options);
  cleanups.push(client.close);
  return client;
}

/** Waits for a call to fail and returns its problem. */
async function getProblem(call: Promise<unknown>) {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => ({ problem: problemOf(thrown) }),
  );
  if (!outcome) {
    throw new Error("The call was not refused.");
  }
  return outcome.problem;
}

describe.each([
  ["Node, over gRPC", openNodeClient],
  ["browsers, over Connect", createBrowserClient],
])("the client for %s", (_, createClient) => {
  const connect = (options: Partial<ClientOptions> = {}) =>
    createClient({ url: server.url, key, keyHeader, ...options });

  it.each([undefined, ""])("throws at once without a key: %p", (missing) => {
    expect(() => connect({ key: missing })).toThrow(
      "The option key is empty: set it to the API key of an application.",
    );
  });

  it("refuses to call without the key that a function returns", async () => {
    const { access } = connect({ key: () => "" });
    const { detail } = await getProblem(access.whoAmI({}));
    expect(detail).toContain("The option key is empty");
  });

  it("calls each of the services", async () => {
    const { applications, access } = connect();
    const created = await applications.createApplication({
      name: "Shop",
      type: "public",
      permissions: ["token:create"],
    });
    const { sessionKey } = await connect({ key: created.key ?? "" }).sessions.createSession({});
    const decision = await access.checkAccess({
      principal: { case: "key", value: sessionKey },
      permission: "token:create",
    });
    expect(decision).toMatchObject({ allowed: false, reason: "not_authorized" });
  });

  it("streams changes until aborted", async () => {
    const controller = new AbortController();
    const { access } = connect();
    for await (const { resumeToken } of access.watchCredentials(
      {},
      { signal: controller.signal },
    )) {
      expect(resumeToken).not.toBe("");
      break;
    }
    controller.abort();
  });

  it("reads its key before each call", async () => {
    const keys = ["lk_prv_old", key];
    const { access } = connect({ key: async () => keys.shift() ?? "" });
    expect(await getProblem(access.whoAmI({}))).toMatchObject({ code: "unauthenticated" });
    expect(await access.whoAmI({})).toMatchObject({ kind: "application" });
  });

  it("stops waiting for its key when the call is aborted", async () => {
    const { access } = connect({ key: () => new Promise<string>(() => {}) });
    const call = access.whoAmI({}, { timeoutMs: 20 });
    await expect(call).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    const aborted = access.whoAmI({}, { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ code: Code.Canceled });
  });

  it("does not reveal a key that cannot be sent", async () => {
    const { access } = connect({ key: "lk_prv_secret\u0000" });
    const { detail } = await getProblem(access.whoAmI({}));
    expect(detail).toContain(keyHeader);
    expect(detail).not.toContain("secret");
  });

  it("reports the errors of each field", async () => {
    const { applications } = connect();
    const call = applications.createApplication({
      name: "",
      type: "unknown",
      permissions: ["bad"],
    });
    expect(await getProblem(call)).toEqual({
      code: "invalid_request",
      violations: ["name required", "type string.in", "permissions[0] string.permission_name"].map(
        (violation) => {
          const [field, code] = violation.split(" ");
          return { field, code, message: expect.any(String) };
        },
      ),
      missingPermissions: [],
      currentVersion: undefined,
      detail: expect.stringContaining("name"),
      requestId: expect.any(String),
      errors: {
        name: [expect.any(String)],
        type: [expect.any(String)],
        "permissions[0]": [expect.any(String)],
      },
      retryAfter: undefined,
    });
  });

  it("reports an invalid key", async () => {
    const { access } = connect({ key: "lk_prv_nobody" });
    expect(await getProblem(access.whoAmI({}))).toMatchObject({
      code: "unauthenticated",
      detail: expect.stringContaining(keyHeader),
      errors: {},
    });
  });

  it("reports a missing permission", async () => {
    const { applications } = connect();
    const { key = "" } = await applications.createApplication({
      name: "Reader",
      type: "private",
      permissions: ["token:read"],
    });
    const call = connect({ key }).access.checkAccess({
      principal: { case: "key", value: key },
      permission: "token:read",
    });
    expect(await getProblem(call)).toMatchObject({
      code: "permission_denied",
      detail: expect.stringContaining("access:check"),
    });
  });

  it("has no code for an unreachable service", async () => {
    const { access } = connect({ url: "http://127.0.0.1:1" });
    const problem = await getProblem(access.whoAmI({}));
    expect(problem).toMatchObject({ code: undefined, requestId: undefined, errors: {} });
    expect(problem.detail).not.toBe("");
  });
});

describe("the client for Node", () => {
  it("opens a new connection after it was closed", async () => {
    const client = createNodeClient({ url: server.url, key, keyHeader });
    await client.access.whoAmI({});
    client.close();
    expect(await client.access.whoAmI({})).toMatchObject({ kind: "application" });
    client.close();
  });

  it("aborts pending calls when closed", async () => {
    const client = createNodeClient({ url: server.url, key, keyHeader });
    const stream = client.access.watchCredentials({})[Symbol.asyncIterator]();
    await stream.next();
    client.close();
    await expect(stream.next().then(() => stream.next())).rejects.toThrow(ConnectError);
  });
});

describe("problemOf", () => {
  it("collects all errors of a field, whatever its name", () => {
    const fieldViolations = [
      { field: "name", description: "is too long", reason: "string.max_len" },
      { field: "name", description: "is not one line" },
      { field: "__proto__", description: "is unknown" },
    ];
    const details = [{ desc: BadRequestSchema, value: { fieldViolations } }];
    const error = new ConnectError("no", Code.InvalidArgument, undefined, details);
    const { errors, violations } = problemOf(error);
    expect(violations).toHaveLength(3);
    expect(violations[0]).toEqual({
      field: "name",
      message: "is too long",
      code: "string.max_len",
    });
    expect(Object.entries(errors)).toEqual([
      ["name", ["is too long", "is not one line"]],
      ["__proto__", ["is unknown"]],
    ]);
  });

  it("reads the missing permissions and the current version", () => {
    const metadata = { missing_permissions: "a:b,c:d", current_version: "18" };
    const value = { reason: "PERMISSION_DENIED", domain: "latchkey", metadata };
    const details = [{ desc: ErrorInfoSchema, value }];
    const error = new ConnectError("no", Code.PermissionDenied, undefined, details);
    expect(problemOf(error)).toMatchObject({
      missingPermissions: ["a:b", "c:d"],
      currentVersion: "18",
    });
    expect(problemOf(new Error("failed")).missingPermissions).toEqual([]);
  });

  it.each([new Error("failed"), "failed", undefined, null, 42])("accepts %p", (thrown) => {
    expect(problemOf(thrown)).toMatchObject({ code: undefined, errors: {} });
  });
});

describe("the client for browsers", () => {
  it("can be bundled without Node modules", () => {
    const { errors, metafile } = buildSync({
      entryPoints: [join(__dirname, "../../src/client/browser.ts")],
      bundle: true,
      write: false,
      metafile: true,
      platform: "browser",
      format: "esm",
      logLevel: "silent",
    });
    expect(errors).toEqual([]);
    const files = Object.keys(metafile.inputs);
    expect(files.some((file) => file.includes("connect-web"))).toBe(true);
    expect(files.filter((file) => /connect-node|keys\.ts|guard\.ts/.test(file))).toEqual([]);
  });
});
