import { setTimeout as delay } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createLatchkeyClient, type LatchkeyNodeClient } from "../../src/client/create-guard.js";
import type { Decision } from "../../src/client/decision.js";
import { scriptCommand, useChildren } from "../support/service/child-process.js";
import { startServer, type TestServer } from "../support/service/server.js";

const maxStaleness = 200;
const start = useChildren();

let server: TestServer;
let client: LatchkeyNodeClient;
let rootKey: string;

beforeEach(async () => {
  server = await startServer();
  rootKey = (await server.createTenant()).key;
  client = createLatchkeyClient({ url: server.url, key: rootKey });
});

afterEach(async () => {
  client.close();
  await server.close();
});

async function startGuard() {
  const { id, key: principal = "" } = await client.applications.createApplication({
    name: "Principal",
    type: "private",
    permissions: ["token:read"],
  });
  const script = "test/client/guard-child.ts";
  const child = start(scriptCommand(script, server.url, rootKey, principal, String(maxStaleness)));
  const { pid } = await child.line(0);
  let lines = 1;
  const next = () => child.line(lines++);
  return {
    id,
    pid,
    write: child.write,
    next,
    async check(): Promise<Decision> {
      child.write("check\n");
      return next();
    },
  };
}

type ChildGuard = Awaited<ReturnType<typeof startGuard>>;

async function checkUntilCached(guard: ChildGuard): Promise<Decision> {
  for (;;) {
    const decision = await guard.check();
    if (decision.source === "cache") {
      return decision;
    }
  }
}

describe("a process with a guard", () => {
  it("does not use stale decisions after it was suspended", async () => {
    const guard = await startGuard();
    for (let round = 0; round < 3; round++) {
      const permissions = ["token:read"];
      await client.applications.updateApplication({ id: guard.id, name: "Principal", permissions });
      while (!(await checkUntilCached(guard)).allowed) {}
      process.kill(guard.pid, "SIGSTOP");
      await client.applications.updateApplication({
        id: guard.id,
        name: "Principal",
        permissions: ["token:create"],
      });
      guard.write("check\ncheck\n");
      // Long enough for its cache to become too old.
      await delay(maxStaleness * 3);
      process.kill(guard.pid, "SIGCONT");
      const decisions = [await guard.next(), await guard.next()];
      expect(decisions.map(({ allowed }) => allowed)).toEqual([false, false]);
    }
  });

  const startWaiting = (url: string, key: string) =>
    start(scriptCommand("test/client/guard-ready-child.ts", url, key));

  it("exits with the error if it waits for a guard whose key is refused", async () => {
    const child = startWaiting(server.url, "lk_prv_unknown");
    await expect(child.line(1)).rejects.toThrow("exited with 1");
  });

  it("stays alive while it waits for a guard and the service is unreachable", async () => {
    const child = startWaiting("http://127.0.0.1:1", rootKey);
    expect(await child.line(2)).toBe(Code.Unavailable);
  });

  it("exits when the guard is closed, also during checks", async () => {
    const guard = await startGuard();
    await checkUntilCached(guard);
    guard.write("close\n");
    const { decisions } = await guard.next();
    for (const decision of decisions) {
      expect(decision).toMatchObject({ allowed: false });
    }
    // The process exits without another line and without an error.
    await expect(guard.next()).rejects.toThrow("exited with 0");
  });
});
