import { availableParallelism } from "node:os";
import { describe, expect, it } from "@jest/globals";
import { ConfigError, type Environment, readSettings } from "../src/config.js";

function problemsOf(environment: Environment): readonly string[] {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.problems;
    }
    throw error;
  }
  return [];
}

describe("settings", () => {
  it("need nothing: every one has a default", () => {
    expect(readSettings({})).toMatchObject({
      port: 8080,
      workers: availableParallelism(),
      store: { kind: "embedded", dataDir: "./data" },
      keyHeader: "SVC-API-KEY",
      sessionTtl: 180_000,
      foreignKeys: false,
      grantPolicy: "held",
      peppers: [""],
      corsOrigins: [],
      trustedProxies: [],
    });
  });

  it("take an empty variable for one that is not set", () => {
    expect(readSettings({ PORT: "", MONGODB_URI: "" })).toEqual(readSettings({}));
  });

  it("use MongoDB where its address is given", () => {
    expect(readSettings({ MONGODB_URI: "mongodb://db", MONGODB_DATABASE: "keys" }).store).toEqual({
      kind: "mongodb",
      uri: "mongodb://db",
      database: "keys",
    });
  });

  it.each([
    ["180", 180_000],
    ["500ms", 500],
    ["3m", 180_000],
    ["2h", 7_200_000],
    ["30d", 2_592_000_000],
  ])("read the time %s", (text, milliseconds) => {
    expect(readSettings({ SESSION_TTL: text }).sessionTtl).toBe(milliseconds);
  });

  it.each([
    ["4096", 4096],
    ["64kb", 65_536],
    ["2MB", 2_097_152],
  ])("read the size %s", (text, bytes) => {
    expect(readSettings({ BODY_LIMIT: text }).bodyLimit).toBe(bytes);
  });

  it("read peppers newest first, where an empty one at the end stands for none", () => {
    const [first, second] = ["a".repeat(16), "b".repeat(16)];
    expect(readSettings({ KEY_PEPPER: `${first},${second},` }).peppers).toEqual([
      first,
      second,
      "",
    ]);
  });

  it("cannot be changed", () => {
    expect(Object.isFrozen(readSettings({}))).toBe(true);
  });

  it("tell every problem at once, by the name of the variable", () => {
    const problems = problemsOf({
      PORT: "http",
      WORKERS: "many",
      SESSION_TTL: "soon",
      GRANT_POLICY: "loose",
      CORS_ORIGINS: "https://a.example/path",
      KEY_HEADER: "bad header",
      TLS_CERT: "/nowhere/cert.pem",
      TLS_KEY: "/nowhere/key.pem",
      MONGODB_URI: "localhost:27017",
      BODY_LIMIT: "1tb",
      LOG_LEVEL: "loud",
      KEY_PEPPER: "short",
      MONGODB_DATABASE: "a/b",
      TRUSTED_PROXIES: "everybody",
    });
    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual([
      "BODY_LIMIT",
      "CORS_ORIGINS",
      "GRANT_POLICY",
      "KEY_HEADER",
      "KEY_PEPPER",
      "LOG_LEVEL",
      "MONGODB_DATABASE",
      "MONGODB_URI",
      "PORT",
      "SESSION_TTL",
      "TLS_CERT",
      "TLS_KEY",
      "TRUSTED_PROXIES",
      "WORKERS",
    ]);
  });

  it.each(["0", "-1", "1.5", "129", "1e2", "all"])("refuse WORKERS=%s", (WORKERS) => {
    expect(problemsOf({ WORKERS })).toEqual([
      "WORKERS must be a number of processes from 1 to 128, for example 4",
    ]);
  });

  it("read the proxies that are trusted, by network or by address", () => {
    const { trustedProxies } = readSettings({ TRUSTED_PROXIES: "10.0.0.0/8, ::1,::ffff:1.2.3.4" });
    expect(trustedProxies).toEqual([
      { start: [10, 0, 0, 0], prefix: 8 },
      { start: [...Array(15).fill(0), 1], prefix: 128 },
      { start: [1, 2, 3, 4], prefix: 32 },
    ]);
  });

  it.each([
    ["10.0.0.0/33", '"10.0.0.0/33" must have a prefix from /0 to /32'],
    ["::1,10.1.0.0/8", '"10.1.0.0/8" has bits beyond its prefix: write 10.0.0.0/8 for the network'],
    ["loopback", '"loopback" must be a network such as 203.0.113.0/24'],
    ["::1,", '"" must be a network such as 203.0.113.0/24'],
    ["*", '"*" must be a network such as 203.0.113.0/24'],
  ])("refuse TRUSTED_PROXIES=%s", (TRUSTED_PROXIES, why) => {
    const start = "TRUSTED_PROXIES must be networks or addresses joined by commas";
    expect(problemsOf({ TRUSTED_PROXIES })).toEqual([expect.stringContaining(`${start}: ${why}`)]);
  });

  it("do not repeat a secret in what they tell", () => {
    expect(problemsOf({ KEY_PEPPER: "hunter2" }).join()).not.toContain("hunter2");
    expect(problemsOf({ MONGODB_URI: "http://u:hunter2@db" }).join()).not.toContain("hunter2");
  });

  it("refuse files that are no certificate and key", () => {
    const problems = problemsOf({ TLS_CERT: "package.json", TLS_KEY: "package.json" });
    expect(problems).toEqual([
      "TLS_CERT and TLS_KEY must be a certificate and its key, as PEM files",
    ]);
  });

  it.each(["REQUEST_TIMEOUT", "SHUTDOWN_GRACE"])("refuse a %s that no timer can keep", (name) => {
    expect(problemsOf({ [name]: "600h" })).toEqual([expect.stringContaining("at most 24h")]);
  });

  it.each(["connection", "Transfer-Encoding", "grpc-timeout", "x-forwarded-for", "x-request-id"])(
    "refuse the header %s for keys, which means something else",
    (KEY_HEADER) => {
      expect(problemsOf({ KEY_HEADER })).toHaveLength(1);
    },
  );

  it("keep events for a month, or as long as is said, up to ten years", () => {
    const day = 24 * 3_600_000;
    expect(readSettings({}).eventRetention).toBe(30 * day);
    expect(readSettings({ EVENT_RETENTION: "3650d" }).eventRetention).toBe(3_650 * day);
    for (const EVENT_RETENTION of ["3651d", "0d", "1w", "-1d"]) {
      expect(problemsOf({ EVENT_RETENTION })).toEqual([
        expect.stringContaining("EVENT_RETENTION must be a time such as"),
      ]);
    }
  });

  it("need the certificate and its key together", () => {
    expect(problemsOf({ TLS_CERT: "package.json" })).toEqual([
      "TLS_CERT and TLS_KEY go together: set both or none",
    ]);
  });

  it("refuse a longest session that is shorter than the usual one", () => {
    expect(problemsOf({ SESSION_TTL: "1h", SESSION_MAX_TTL: "1m" })).toHaveLength(1);
  });
});
