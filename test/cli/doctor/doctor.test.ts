import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { checkPort, isAtLeast } from "../../../src/cli/doctor/machine-checks.js";
import type { Finding } from "../../../src/cli/doctor/report.js";
import { checkCertificate } from "../../../src/cli/doctor/settings-checks.js";
import { checkFolder, checkMongo } from "../../../src/cli/doctor/store-checks.js";
import { readSettings } from "../../../src/config/settings.js";
import { managerPermissions } from "../../../src/contract/grants.js";
import type { MongoStatus } from "../../../src/store/mongo/inspect.js";
import { openStore } from "../../../src/store/open-store.js";
import type { NewApplication } from "../../../src/store/port/records.js";
import { anApplication } from "../../contract/store/fixtures.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { uri } from "../../support/mongo/uri.js";
import { withTempFolder } from "../../support/service/run-latchkey.js";
import { startServer } from "../../support/service/server.js";
import { audit } from "../../support/store/audit.js";
import { type OperableStore, withOperations } from "../../support/store/operations.js";
import { useCli } from "../run-cli.js";

const cli = useCli();
const mongo = useMongo();

interface Report {
  readonly code: number | null;
  readonly findings: readonly Finding[];
}

async function runDoctor(
  environment: Readonly<Record<string, string>>,
  options: readonly string[] = [],
): Promise<Report> {
  const PORT = "0";
  const { code, stdout, stderr } = await cli.run(["doctor", "--json", ...options], {
    environment: { PORT, ...environment },
  });
  expect(stderr).toBe("");
  const { ok, findings } = JSON.parse(stdout);
  expect(code).toBe(ok ? 0 : 1);
  return { code, findings };
}

const findingsFor = ({ findings }: Report, name: string) =>
  findings.filter(({ check }) => check === name).map(({ state, found }) => `${state} ${found}`);

/** Hashes the files of a folder, except the lock file, which every reader changes. */
function hashFiles(folder: string): string[] {
  return readdirSync(folder).map((name) => {
    const isLock = name === "lock.mdb";
    const content = isLock ? "" : readFileSync(join(folder, name));
    return `${name} ${createHash("sha256").update(content).digest("hex")}`;
  });
}

/** Expects a warning about the tenant whose last manager expires. */
async function expectManagerWarning(
  { applications }: OperableStore,
  getReport: () => Promise<Report>,
): Promise<void> {
  const create = (fields: Partial<NewApplication>) =>
    applications.create(
      anApplication({ permissions: managerPermissions, ...fields }),
      audit.created,
    );
  const [sooner, later] = [Date.UTC(2098, 0), Date.UTC(2099, 0)];
  const { tenantId: managed } = await create({ expiresAt: sooner });
  await create({ tenantId: managed });
  await create({ permissions: ["application:create"], expiresAt: sooner });
  expect(findingsFor(await getReport(), "managers")).toEqual([
    "ok no tenant's last manager expires",
  ]);

  const { tenantId } = await create({ expiresAt: sooner });
  await create({ tenantId, expiresAt: later });
  expect(findingsFor(await getReport(), "managers")).toEqual([
    `warn the last application of tenant ${tenantId} that can create and update applications ` +
      "expires at 2099-01-01T00:00:00.000Z",
  ]);
}

describe("doctor on an embedded store", () => {
  it("warns of tenants whose last manager expires", () =>
    withTempFolder(async (DATA_DIR) => {
      const store = withOperations(await openStore(readSettings({ DATA_DIR })));
      try {
        await expectManagerWarning(store, () => runDoctor({ DATA_DIR }));
      } finally {
        await store.close();
      }
    }));

  it("passes every check and changes nothing", () =>
    withTempFolder(async (DATA_DIR) => {
      await (await openStore(readSettings({ DATA_DIR }))).close();
      const before = hashFiles(DATA_DIR);
      const lowLimits = { CONNECTION_LIMIT: "100", ADDRESS_CONNECTION_LIMIT: "100" };
      const report = await runDoctor({
        DATA_DIR,
        KEY_PEPPER: "a pepper for this test",
        ...lowLimits,
      });
      // Free disk space depends on the machine.
      const others = report.findings.filter(({ check }) => check !== "disk");
      expect(others.filter(({ state }) => state !== "ok")).toEqual([]);
      expect(findingsFor(report, "layout")).toEqual([
        expect.stringMatching(/^ok version \d+, all indexes exist$/),
      ]);
      expect(hashFiles(DATA_DIR)).toEqual(before);
    }));

  it("does not create a missing folder, and reports a broken database file", () =>
    withTempFolder(async (folder) => {
      const DATA_DIR = join(folder, "deep", "data");
      const report = await runDoctor({ DATA_DIR });
      expect(findingsFor(report, "store")).toEqual([`warn ${DATA_DIR} contains no data`]);
      expect(existsSync(join(folder, "deep"))).toBe(false);

      await writeFile(join(folder, "data.mdb"), "not a database");
      const broken = await runDoctor({ DATA_DIR: folder });
      expect(broken.code).toBe(1);
      expect(findingsFor(broken, "layout")).toEqual([
        `fail ${folder}: its data.mdb is not an LMDB database`,
      ]);
    }));

  it("checks the schema version, permissions and free space", () => {
    const store = { bytes: 1, schema: 4, supportedSchema: 4 };
    const status = {
      path: "/d",
      exists: true,
      isWritable: true,
      isShared: false,
      freeBytes: 2 ** 40,
      store,
    };
    const states = (change: object) =>
      checkFolder({ ...status, ...change }).map(({ state }) => state);
    expect(states({})).toEqual(["ok", "ok", "ok"]);
    expect(states({ store: { ...store, schema: 0 } })).toEqual(["ok", "warn", "ok"]);
    expect(states({ store: { ...store, schema: 5, error: "the folder has schema 5" } })).toEqual([
      "ok",
      "fail",
      "ok",
    ]);
    expect(states({ isWritable: false })).toEqual(["fail", "ok"]);
    expect(states({ isShared: true })).toEqual(["ok", "warn", "ok", "ok"]);
    expect(states({ freeBytes: 2 ** 29 })).toEqual(["ok", "ok", "warn"]);
    expect(states({ freeBytes: 2 ** 20 })).toEqual(["ok", "ok", "fail"]);
    const managerExpirations = [{ tenantId: "t", at: 0 }];
    expect(states({ store: { ...store, managerExpirations } })).toEqual(["ok", "ok", "warn", "ok"]);
  });
});

describe("doctor on MongoDB", () => {
  it("passes every check, and reports missing indexes without creating them", async () => {
    const db = mongo.createDatabase();
    const environment = { MONGODB_URI: uri, MONGODB_DATABASE: db.databaseName };
    const empty = await runDoctor(environment);
    expect(findingsFor(empty, "layout")).toEqual(["warn the database is empty"]);
    expect(await db.listCollections().toArray()).toEqual([]);

    await mongo.open(db);
    const healthy = await runDoctor(environment);
    expect(healthy.code).toBe(0);
    expect(findingsFor(healthy, "layout")).toEqual(["ok 9 collections, all indexes exist"]);
    expect(findingsFor(healthy, "clock")).toEqual([expect.stringMatching(/^ok \d+ ms /)]);
    expect(findingsFor(healthy, "audit log")).toEqual([
      expect.stringMatching(/^ok complete up to \d+\.\d s ago$/),
    ]);
    expect(findingsFor(healthy, "ttl monitor")).toEqual([
      expect.stringMatching(/^ok runs every 1 s/),
    ]);
    expect(findingsFor(healthy, "members")).toEqual(["warn only one member"]);

    await db.collection("sessions").dropIndex("expires_at_1");
    await db.command({ collMod: "applications", validationLevel: "off" });
    const broken = await runDoctor(environment);
    expect(broken.code).toBe(1);
    expect(findingsFor(broken, "layout")).toEqual([
      expect.stringMatching(/^fail applications has a different validator/),
      'fail the index {"expires_at":1} of sessions is missing',
    ]);
    expect(await db.collection("sessions").indexExists("expires_at_1")).toBe(false);
  });

  it("warns of tenants whose last manager expires", async () => {
    const db = mongo.createDatabase();
    const store = await mongo.open(db);
    const environment = { MONGODB_URI: uri, MONGODB_DATABASE: db.databaseName };
    await expectManagerWarning(store, () => runDoctor(environment));
  });

  it("reports an unreachable server without its password", async () => {
    const MONGODB_URI = "mongodb://user:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=500";
    const report = await runDoctor({ MONGODB_URI });
    expect(findingsFor(report, "store")).toEqual([
      expect.stringMatching(/^fail MongoDB at 127.0.0.1:1 cannot be reached/),
    ]);
    expect(JSON.stringify(report)).not.toContain("hunter2");
  });
});

const healthyStatus: MongoStatus = {
  version: "6.0",
  topology: "replica set",
  layout: { missing: [], expectedCount: 6, differences: [] },
  logLag: 900,
  clock: { ahead: 3, uncertainty: 1 },
  lookup: 1,
  ttl: { isEnabled: true, passes: 5, interval: 60, uptime: 300 },
  overdue: [],
  members: {
    majority: 2,
    all: [
      { name: "a", state: "PRIMARY", isHealthy: true, lag: 0 },
      { name: "b", state: "SECONDARY", isHealthy: true, lag: 10 },
      { name: "c", state: "SECONDARY", isHealthy: true, lag: 10 },
    ],
  },
};
const unreachable = { state: "(not reachable/healthy)", isHealthy: false };
const membersWith = (
  ...others: { name: string; state: string; isHealthy: boolean; lag?: number }[]
) => ({
  members: { majority: 2, all: [{ name: "a", state: "PRIMARY", isHealthy: true }, ...others] },
});
const secondary = { name: "b", state: "SECONDARY", isHealthy: true, lag: 0 };

describe("checkMongo", () => {
  const findProblems = (change: object) =>
    checkMongo({ ...healthyStatus, ...change } as MongoStatus).filter(
      ({ state }) => state !== "ok",
    );

  it.each([
    ["a healthy replica set", {}],
    [
      "a server that has just started",
      { ttl: { isEnabled: true, passes: 0, interval: 60, uptime: 30 } },
    ],
  ])("reports no problem for %s", (_, change) => {
    expect(findProblems(change)).toEqual([]);
  });

  it.each([
    ["a clock skew", { clock: { ahead: -5_000, uncertainty: 2 } }, ["warn clock"]],
    [
      "a disabled TTL monitor",
      { ttl: { isEnabled: false, passes: 5, interval: 60, uptime: 300 } },
      ["fail ttl monitor"],
    ],
    [
      "a TTL monitor that never ran",
      { ttl: { isEnabled: true, passes: 0, interval: 60, uptime: 300 } },
      ["fail ttl monitor"],
    ],
    ["an audit log that is behind", { logLag: 60_000 }, ["warn audit log"]],
    ["expired documents that were not deleted", { overdue: ["sessions"] }, ["fail ttl monitor"]],
    ["a single server", { topology: "single server", members: undefined } as const, ["fail store"]],
    [
      "a sharded cluster",
      { topology: "sharded cluster", ttl: undefined, members: undefined } as const,
      ["warn ttl monitor", "warn members"],
    ],
    [
      "a missing collection",
      { layout: { missing: ["events"], expectedCount: 6, differences: [] } },
      ["fail layout"],
    ],
    [
      "one unreachable member of three",
      membersWith(secondary, { ...unreachable, name: "c" }),
      ["warn members"],
    ],
    [
      "a lagging member",
      membersWith(secondary, { ...secondary, name: "c", lag: 60_000 }),
      ["warn members"],
    ],
    [
      "a majority of unreachable members",
      membersWith({ ...unreachable, name: "b" }, { ...unreachable, name: "c" }),
      ["warn members", "warn members", "fail members"],
    ],
    ["no primary", { members: { majority: 1, all: [secondary] } }, ["fail members"]],
    [
      "a user without clusterMonitor",
      { ttl: "hidden", members: "hidden" } as const,
      ["warn ttl monitor", "warn members"],
    ],
  ])("reports %s", (_, change, expected) => {
    const problems = findProblems(change);
    expect(problems.map(({ state, check }) => `${state} ${check}`)).toEqual(expected);
    expect(problems.every(({ fix }) => fix)).toBe(true);
  });
});

describe("doctor on settings", () => {
  it("reports every invalid setting", async () => {
    const report = await runDoctor({ PORT: "http", LOG_LEVEL: "loud" });
    expect(findingsFor(report, "settings")).toEqual([
      expect.stringMatching(/^fail PORT must be/),
      expect.stringMatching(/^fail LOG_LEVEL must be/),
    ]);
  });

  it("names an option that was used, and otherwise the variable", async () => {
    const report = await runDoctor({ LOG_LEVEL: "loud", PORT: "1" }, ["--port", "http"]);
    expect(findingsFor(report, "settings")).toEqual([
      expect.stringMatching(/^fail --port must be/),
      expect.stringMatching(/^fail LOG_LEVEL must be/),
    ]);
    const open = await runDoctor({}, ["--grant-policy", "open"]);
    expect(open.findings.find(({ check }) => check === "grants")?.fix).toBe(
      "Remove --grant-policy unless this is intended.",
    );
  });

  it("reports a certificate that is not yet valid, expires soon or has expired", () => {
    const pem = readFileSync("test/fixtures/localhost.crt");
    const stateIn = (year: number, month = 0) =>
      checkCertificate(pem, Date.UTC(year, month, 20)).state;
    expect([stateIn(2020), stateIn(2100), stateIn(2126, 9), stateIn(2127)]).toEqual([
      "fail",
      "ok",
      "warn",
      "fail",
    ]);
  });
});

describe("checkPort", () => {
  it("distinguishes a free port, the service and another program", async () => {
    const check = (port: number) => checkPort({ ...readSettings({ HOST: "127.0.0.1" }), port });
    const server = await startServer();
    expect(await check(server.port)).toMatchObject({
      state: "ok",
      found: expect.stringContaining("is ready"),
    });
    await server.close();
    expect(await check(server.port)).toMatchObject({
      state: "ok",
      found: expect.stringContaining("is free"),
    });

    const other = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    expect(await check((other.address() as AddressInfo).port)).toMatchObject({ state: "fail" });
    other.close();
  });

  it("writes an IPv6 address in brackets before the port", async () => {
    const { found } = await checkPort({ ...readSettings({ HOST: "::1" }), port: 1 });
    expect(found).toBe("[::1]:1 is free; no service is running");
  });
});

describe("isAtLeast", () => {
  it("compares versions number by number", () => {
    const versions = ["20.19.0", "20.20.2", "22.0.0", "20.9.9", "18.99.0"];
    expect(versions.map((version) => isAtLeast(version, "20.19"))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});
